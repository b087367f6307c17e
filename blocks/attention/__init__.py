"""Attention: multi-head self- and cross-attention, additive attention, and scaled dot-product attention without projections."""
