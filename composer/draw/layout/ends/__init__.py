"""What stands at the ends of wires: what a box calls a value that it reads, and which of several it is."""
