"""One archive that carries what a pod needs from outside to a site that has no network: packages and images."""
