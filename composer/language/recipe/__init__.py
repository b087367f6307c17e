"""A document as a recipe: every key, block, field and port checked by name."""
