"""What a cluster made with kubeadm gets. Pure."""
