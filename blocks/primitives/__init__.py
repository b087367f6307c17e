"""Primitive operations, to compose what has no block of its own."""
