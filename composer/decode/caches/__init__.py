"""What sessions keep of the tokens they have read: caches that grow, and caches of a fixed length."""
