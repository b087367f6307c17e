"""The smallest blocks, from which anything that has no block of its own is composed."""
