"""Published models as folders: read against their weights, written as recipes, run with their tokenizer."""
