"""What a person sees in the terminal: lines, tables, live views, verdicts."""
