"""A difference as a figure or a page: both drawings with marks and notes."""
