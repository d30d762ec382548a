"""Bare hosts on this machine: what `podwright pod up` sets up."""
