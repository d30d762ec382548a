"""Bring-up: what a pod becomes, as files per host. Pure: a pod and facts of the site in, text out."""
