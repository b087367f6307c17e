"""Larger models that start with the outputs of smaller ones."""
