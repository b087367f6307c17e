"""What a model costs: parameters, FLOPs and memory, before anything is built."""
