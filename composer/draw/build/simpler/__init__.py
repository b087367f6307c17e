"""Graphs with fewer nodes, which say the same: what is drawn of a model in place of its own."""
