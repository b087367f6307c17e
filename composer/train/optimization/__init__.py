"""How weights change: optimizers, schedules of the learning rate, groups of parameters, and batches in parts."""
