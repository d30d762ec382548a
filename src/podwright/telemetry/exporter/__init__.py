"""What a host tells of its GPUs, ports and runs: the program that runs as `podwright exporter`."""
