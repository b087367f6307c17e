"""The one expression language of numbers, conditions, edges and masks."""
