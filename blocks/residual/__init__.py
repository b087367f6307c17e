"""Residual connections and LayerScale."""
