"""From text to batches: tokenizers, windows, and the objective of each task."""
