"""The commands that measure trained models, and compare them."""
