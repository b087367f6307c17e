"""Positional encodings: rotary embeddings, vectors added to the input, and biases of the attention scores."""
