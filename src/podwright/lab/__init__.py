"""Lab: a pod on one machine, of real engines; for users to try, and the fixture of our own tests."""
