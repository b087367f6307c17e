"""Python source that reads like a person's."""
