"""Layers that a recipe writes one by one, as the repeat that they are."""
