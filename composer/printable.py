"""Text of others as it may stand anywhere: in a terminal, on a page, in a figure, in JSON.

Names of files, values of a configuration and strings of a recipe may hold characters that are seen by no one and obeyed by the
program that shows them: escapes that move the cursor or rename the window, marks that turn the direction of writing around,
line ends that begin a log entry of their own, halves of characters that cannot be written. All that shows such text calls one
of these functions.
"""

from __future__ import annotations

import json
import re
import unicodedata
from html import escape
from typing import Any

JOINERS = "\u200c\u200d"
"""Stay as they are: without them, words of some languages and some emoji are written wrongly."""


def printable(text: str, *, keep: str = "") -> str:
    r"""Return the text with every character that is not visible by its escape.

    Args:
        text: Any text.
        keep: Characters that stay as they are, such as line ends in a text of several lines.

    >>> printable("a\x1b[31m\u202eb\n"), printable("a\nb", keep="\n")
    ('a\\x1b[31m\\u202eb\\n', 'a\nb')
    """
    if text.isprintable():
        return text
    return "".join(each if each in keep or _is_visible(each) else _escaped(each) for each in text)


def markup(text: str, *, keep: str = "") -> str:
    """Return the text for HTML, SVG and attributes in quotes: it neither becomes markup nor controls what shows it.

    Args:
        text: Any text.
        keep: Characters that stay as they are, as for `printable`.

    >>> markup("<b> & '\\x1b'")
    '&lt;b&gt; &amp; &#x27;\\\\x1b&#x27;'
    """
    return escape(printable(text, keep=keep))


def json_text(data: Any, **options: Any) -> str:
    r"""Return data as JSON that reads as written: letters of all languages as they are, what is not visible by its escape.

    >>> json_text({"größe": "\u202e"})
    '{"größe": "\\u202e"}'
    """
    text = json.dumps(data, ensure_ascii=False, **options)
    return re.sub(r"[^\n -~]", lambda found: found[0] if _is_visible(found[0]) else json.dumps(found[0])[1:-1], text)


def yaml_string(text: str) -> str:
    r"""Return the text in double quotes, in which YAML reads every escape as its character.

    >>> yaml_string('a "b"\n\xad')
    '"a \\"b\\"\\n\\xad"'
    """
    return printable(json.dumps(text, ensure_ascii=False))


def _is_visible(character: str) -> bool:
    return character.isprintable() or character in JOINERS or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
