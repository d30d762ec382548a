"""What changes, told to every browser by one stream."""
