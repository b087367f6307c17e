"""Modules that only hold others, such as a layer's `self.attn`: a forward that calls several of the modules in one looks it up
once.

A module is found by a function of Python, which takes as long as a small operation does.
"""

from __future__ import annotations

import re
from collections import Counter

from composer.lower.emit.identifiers import safe
from composer.lower.emit.statements import SourceLines

_HOLDER = re.compile(r"(?<![.\w])self\.([A-Za-z]\w*)\.(?=\w)")
_VARIABLE = re.compile(r"(?<![.\w])[A-Za-z_]\w*")


def bound_containers(body: SourceLines) -> SourceLines:
    """Return the lines of a forward with a variable for each container that is read several times.

    Examples:
        >>> lines = bound_containers([("y = self.attn.norm(x)", None, ""), ("return x + self.attn.body(y)", None, "")])
        >>> [text for text, _, _ in lines]
        ['attn = self.attn', 'y = attn.norm(x)', 'return x + attn.body(y)']
    """
    reads = Counter(name for text, _, _ in body for name in _HOLDER.findall(text))
    taken = {name for text, _, _ in body for name in _VARIABLE.findall(text)}
    names = {name: safe(name, taken) for name, count in reads.items() if count > 1}
    if not names:
        return body
    values = ", ".join(f"self.{name}" for name in names)
    bound = [
        (_HOLDER.sub(lambda held: f"{names[held[1]]}." if held[1] in names else held[0], text), place, node)
        for text, place, node in body
    ]
    return [(f"{', '.join(names.values())} = {values}", None, ""), *bound]
