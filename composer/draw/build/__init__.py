"""Typed graph to diagram: blocks, frames and edges, as deep as a level shows."""
