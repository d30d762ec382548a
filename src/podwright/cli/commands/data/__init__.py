"""Commands of datasets and selections."""
