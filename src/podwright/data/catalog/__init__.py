"""The catalog: generations of a dataset, made by scans and read by everybody."""
