"""Where a token stands: rotations of queries and keys, and what is added to the stream."""
