"""Stages that several streams go through, above each other."""
