"""The command that writes text with trained and published models."""
