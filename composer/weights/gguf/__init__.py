"""Files of llama.cpp: read, written, and what its architectures call and lay out in ways of their own."""
