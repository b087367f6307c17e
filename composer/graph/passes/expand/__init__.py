"""Recipe to graph: shorthands, conditions, slots and passes worked out."""
