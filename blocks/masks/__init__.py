"""Who may look at whom: predicates of a query position and a key position, and how attention executes them."""
