"""How wide things are that stand side by side, and where they stand."""
