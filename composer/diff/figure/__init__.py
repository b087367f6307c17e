"""A difference as a figure or a page: both drawings, marked, with notes."""
