"""How we talk to others: ssh, the API of Kubernetes, container registries; nothing here belongs to one engine."""
