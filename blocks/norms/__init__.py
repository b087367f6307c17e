"""Norms: bring every position to a common scale."""
