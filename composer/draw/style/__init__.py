"""Colors, icons, themes and the widths of texts."""
