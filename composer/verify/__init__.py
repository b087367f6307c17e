"""The properties of every sound recipe, tried on its model, and the declarations of blocks, tried on each block alone."""
