"""Pictures as slides in one HTML page without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence

from composer.draw.export.html import page_file, policy
from composer.draw.style.themes import ThemeName
from composer.printable import markup


def slides(title: str, pictures: Sequence[tuple[str, str]], theme: ThemeName) -> str:
    """Return a page with a picture for each subject, of which one is shown at a time; without scripts, all are."""
    script = page_file("slides.js")
    figures = "\n".join(
        f'<figure id="{number}"><figcaption>{number} / {len(pictures)} · {markup(subject)}</figcaption>{picture}</figure>'
        for number, (subject, picture) in enumerate(pictures, 1)
    )
    parts = {
        "policy": policy(script),
        "title": markup(title),
        "style": page_file("slides.css"),
        "theme": "dark" if theme == "dark" else "",
        "figures": figures,
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page_file("slides.html"))
