"""Programs that are sent to hosts as they are, and run with whatever Python a host has."""
