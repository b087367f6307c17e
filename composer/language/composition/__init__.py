"""Recipes made of several texts: `extends`, `uses` and overrides."""
