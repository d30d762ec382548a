"""Runs that leave a home and come into another one, and what they told in the forms of other tools."""
