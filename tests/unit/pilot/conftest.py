"""Settings of the pilot's tests."""

from hypothesis import settings

# The machine may be busy with other things; a slow example is no wrong one.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
