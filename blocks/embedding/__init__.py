"""Vectors for ids."""
