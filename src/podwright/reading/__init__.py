"""What lies in a run's folder, read into what reports and comparisons need."""
