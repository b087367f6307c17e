"""The command that trains, and what follows a run."""
