"""What brings hosts to the plan: Ansible, secrets, what hosts say, batches of nodes."""
