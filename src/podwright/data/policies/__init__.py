"""Policies: what happens to the files that a filter chooses, by whom, and when."""
