"""Pointwise formulas: their functions, their types, and the expressions of torch that compute them."""
