"""A design as files that other programs and people take: one module for each of them, each pure."""
