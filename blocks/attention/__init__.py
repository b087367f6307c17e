"""Attention: queries that look at keys, and take values."""
