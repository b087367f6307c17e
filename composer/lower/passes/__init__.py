"""What is found out about the typed graph, and how it is flattened, before source is written; nothing here knows of source."""
