"""The command that writes text, and the models that it opens for it."""
