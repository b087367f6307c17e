"""Analyses and a rewriting of the typed graph, before source is written; they know nothing of the source."""
