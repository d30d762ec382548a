"""Trees of files as they are found: on a disk, behind an address, in a known layout."""
