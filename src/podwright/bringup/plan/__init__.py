"""What each host of a pod shall have. Pure: a pod's file in, text out."""
