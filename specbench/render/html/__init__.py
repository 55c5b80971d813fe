"""One self-contained HTML file. Pieces for any page of this house:

markup    text made safe, elements
document  the shell: head, content policy, style, script
table     a table that sorts
figures   a plot with its description and its figures
report    the page of one run, made of these
"""
