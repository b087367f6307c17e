"""Layers that work on each position on its own."""
