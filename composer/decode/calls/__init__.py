"""The calls of a model in a session: what is attached to the model for them, and what they must have in common."""
