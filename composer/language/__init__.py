"""From a recipe's text to its graph."""
