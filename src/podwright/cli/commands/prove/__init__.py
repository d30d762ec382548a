"""Commands that measure, compare and cost."""
