"""Data sets: what files there are, what their labels hold, and which of them a training is given."""
