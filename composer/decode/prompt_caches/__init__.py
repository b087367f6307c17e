"""Prompts in files: what a session keeps after one, and a reading that goes on from there."""
