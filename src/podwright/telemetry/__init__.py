"""What a pod tells of itself beside its runs: exporters that Prometheus reads."""
