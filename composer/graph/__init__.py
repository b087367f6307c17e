"""The graph of a model: nodes, wires, regions, and what type each port has."""
