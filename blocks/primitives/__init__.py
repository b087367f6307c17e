"""Primitive operations, from which other blocks can be composed."""
