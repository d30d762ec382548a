"""The rules that `check_tree.py` holds the tree to: pure functions from the tree's files to findings."""
