"""What a run minimizes on a batch: the loss of the task, of preferences, or of a distillation."""
