"""The run folder: recipe, settings, metrics and checkpoints."""
