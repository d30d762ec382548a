"""What a pod and its runs cost: ownership, prices, the cost of a result."""
