"""Typed graph to typed graph, and what is found out about it before source is written."""
