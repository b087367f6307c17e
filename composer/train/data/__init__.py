"""From text to batches: tokenizers, windows, and what each task learns from."""
