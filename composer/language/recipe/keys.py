"""The keys of recipes by where they stand, and the words that are no names."""

from composer.language.expressions.functions import FUNCTIONS

LANGUAGE = 1
"""The version of the language."""
TOP = (
    *("recipe", "language", "doc", "paper", "task", "params", "blocks"),
    *("inputs", "graph", "outputs", "positions", "losses", "init", "checkpoints"),
)
COMPOSED = ("extends", "uses")
"""Keys of a whole recipe that are worked out before the others are read."""
BLOCK = ("doc", "paper", "params", "blocks", "inputs", "graph", "outputs", "init")
LONG_PARAM = ("default", "type", "required", "min", "max", "of", "doc")
LONG_INPUT = ("type", "default", "doc")
COMMON = ("type", "in", "when", "tie", "trainable")
"""Of a node that is a block, beside the block's own fields."""
GROUP = ("graph", "in", "outputs", "when", "tie", "trainable")
REPEAT = ("repeat", "as", "each", "share", "graph", "in", "outputs", "when", "tie", "trainable")
SCAN = ("scan", "graph", "in", "outputs", "when", "tie", "trainable")

WORDS = frozenset({"input", "none", "true", "false", "and", "or", "not", "if", "else"})
"""Words that name no node."""
VALUE_WORDS = WORDS | FUNCTIONS.keys()
"""Words that name no value."""
