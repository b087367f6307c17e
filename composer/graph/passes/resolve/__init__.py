"""References to wires, through the borders of regions, and builders to the frozen graph."""
