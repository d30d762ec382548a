"""What a design should give: collectives, scaling of a training, capacity; each with its error on published figures."""
