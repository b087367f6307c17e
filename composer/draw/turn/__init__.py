"""A drawing whose stream runs to the right, made from one whose stream runs up."""
