"""What labels hold: classes, pixels, and their statistics."""
