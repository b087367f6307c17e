"""Mixture of experts: many layers, of which each position visits a few."""
