"""Costs of a model in closed form: parameters, FLOPs and memory, without building it."""
