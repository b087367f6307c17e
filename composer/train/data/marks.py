"""The names of special tokens that objectives and recipes need."""

from __future__ import annotations

START, END, MASK = "<start>", "<end>", "<mask>"
PADDING = "<padding>"
"""What fills up rows, of recipes with a param for it."""
GAPS = tuple(f"<{number}>" for number in range(100))
"""The sentinel tokens of removed spans, as many as in T5."""
BLANK = "<blank>"
"""What a model says at frames at which it says nothing new (CTC)."""
