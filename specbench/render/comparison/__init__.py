"""A `Comparison` for a terminal, Markdown, JSON, JUnit and GitHub. Pure: a value in, text out.

words      numbers and answers as a person reads them; percent only here
terminal, markdown, junit, github, json_text    one form each
"""
