"""The residual connection, and what acts on its branch."""
