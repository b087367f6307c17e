"""Measuring: what a trained model is compared with."""
