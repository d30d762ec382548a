"""The commands, a file for each noun; a file is imported when its command is asked for."""
