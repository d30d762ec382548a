"""What management controllers measure of hosts, asked by the monitoring host alone, for Prometheus."""
