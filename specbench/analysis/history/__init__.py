"""Nights in a row: what one of them says, where their figures changed, which runs may go. Pure.

outcome     a comparison, or the want of one, to a row of the history
changes     change points over many nights: advice, never a gate
retention   which runs are deleted for a disk budget
"""
