"""The passes that turn a recipe into a typed graph, and those that rewrite one."""
