"""A suite's nights: the page of their history, what is said of one of them, and what a webhook is told. Pure.

words      a night's status and sentences
forms      one night for a terminal, Markdown, JSON, JUnit and GitHub
message    one night as the JSON body of a webhook
page       the history as one HTML file
"""
