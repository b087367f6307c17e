"""What is checked on a typed graph: causality, shared weights, lint."""
