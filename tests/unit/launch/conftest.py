"""What tests of this folder share."""

from tests.fixtures.launching import home, load

__all__ = ["home", "load"]
