"""Diagram to scene: everything gets its place on the page."""
