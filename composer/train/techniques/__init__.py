"""Techniques that a run may use: averages of the weights, activations that are computed again, compiled modules."""
