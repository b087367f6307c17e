"""Typed graph to Python source that reads as if a person had written it."""
