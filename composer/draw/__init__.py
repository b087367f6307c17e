"""Drawings of architectures: from the typed graph to a picture."""
