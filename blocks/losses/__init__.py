"""Losses: scalars that training minimizes."""
