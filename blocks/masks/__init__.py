"""Attention masks: predicates of a query position and a key position, and their execution by attention kernels."""
