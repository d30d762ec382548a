"""Commands of pods, their hosts and their mirrors."""
