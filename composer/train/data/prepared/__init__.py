"""Texts that are prepared once: read piece by piece, as tokens in files, in a cache."""
