"""Files that appear whole or not at all, locks, journals of JSON lines, and files that others wrote."""
