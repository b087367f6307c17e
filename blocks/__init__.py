"""What models are made of: blocks, masks, positions, norms and activations, each declared in one class."""
