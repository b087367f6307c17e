"""Layers that read a sequence one position after the other and carry a state along."""
