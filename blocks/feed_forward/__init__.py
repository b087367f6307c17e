"""Position-wise feed-forward networks (FFN, MLP)."""
