"""Types along the wires: sizes, fields, weights and slots of every block."""
