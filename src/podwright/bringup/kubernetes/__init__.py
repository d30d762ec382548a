"""What an administrator gives a cluster: rights, storage, and what OpenShift alone needs."""
