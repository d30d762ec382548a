"""Commands that start runs and end them."""
