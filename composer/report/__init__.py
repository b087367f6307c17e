"""A run to look at: its curves, settings, samples and model, as a page and as text."""
