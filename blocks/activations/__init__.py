"""Curves applied to each number alone."""
