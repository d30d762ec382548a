"""What a run means: series, curves, classes and figures, worked out from its record; pure but for `gather`."""
