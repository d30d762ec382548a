"""Commands that size a pod and predict what it does."""
