"""Commands of labs."""
