"""Diagram to diagram: order, branches, columns, merged kinds."""
