"""The ranks of one node: started, bound, listened to, and stopped."""
