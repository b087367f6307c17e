"""What is in a closed box, in a few letters."""
