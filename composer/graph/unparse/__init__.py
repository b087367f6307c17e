"""A typed graph as a recipe again."""
