"""Activation functions, applied to each element."""
