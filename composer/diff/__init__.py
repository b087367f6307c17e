"""Two models side by side: which nodes are the same, and what differs."""
