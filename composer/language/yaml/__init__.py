"""YAML as text with the place of every key and value."""
