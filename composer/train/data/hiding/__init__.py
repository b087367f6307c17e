"""What is hidden of texts: tokens, words, spans, the order of sentences."""
