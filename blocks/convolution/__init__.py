"""Convolutions, pooling and interpolation: what slides a kernel along positions, or over an image."""
