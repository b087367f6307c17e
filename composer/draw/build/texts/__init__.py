"""What is written in boxes and beside them: titles, names, captions of groups, and descriptions for those who see no figure."""
