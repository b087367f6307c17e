"""Speech: recordings, and the transcripts that a model writes of them."""
