"""What every role of the pilot stands on: the kernel, files and one loop that waits."""
