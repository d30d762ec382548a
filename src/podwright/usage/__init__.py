"""How clusters are used: what waits and why, GPU hours that were used and wasted."""
