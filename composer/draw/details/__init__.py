"""Details: closed blocks drawn from inside beside the figure, as papers draw the block that is their own."""
