"""Forecasting: series of numbers, and windows of them."""
