"""Comparison of two models: which nodes are the same, and what differs."""
