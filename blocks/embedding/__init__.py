"""Embeddings of token ids and image patches, classification tokens, and pooling of sequences."""
