"""What the site takes from outside `docs/`: the pages at the root of the repository and the links to them, and nothing else."""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[1]
PLACES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "LICENSE": "LICENSE.txt",
    "composer/data/README.md": "plays.md",
    "composer/draw/export/fonts/OFL.txt": "OFL.txt",
}
"""Files of the repository outside `docs/`, and where the site has them."""
SOURCES = {place: source for source, place in PLACES.items()}
LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?=[)#])")
FETCHED = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=["']?(https?://[^"'\s>]+)""")
FENCE = re.compile(r"^(?P<fence> *```+)(?P<language>\w+) (?P<words>.+)$", re.MULTILINE)


def on_files(files: Files, *, config: Any) -> None:
    """Add the files from outside `docs/`; those without a place in the navigation are reached by links."""
    for source, place in PLACES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source), inclusion=InclusionLevel.NOT_IN_NAV))


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links to where the site has their targets, and name a fence after the file that it writes."""
    place = page.file.src_uri
    folder = posixpath.dirname(SOURCES.get(place, f"docs/{place}"))

    def led(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["path"]))
        there = PLACES.get(target, target.removeprefix("docs/"))
        return posixpath.relpath(there, posixpath.dirname(place) or ".")

    def titled(fence: re.Match[str]) -> str:
        """The words after the language tell the tests what to do with an example; Markdown has no use for them."""
        file = re.search(r"file=(\S+)", fence["words"])
        return fence["fence"] + fence["language"] + (f' title="{file[1]}"' if file else "")

    return FENCE.sub(titled, LINK.sub(led, markdown))


def on_post_page(output: str, *, page: Any, **_: Any) -> None:
    """Warn, which fails a strict build, where reading a page would fetch something from the network."""
    for address in FETCHED.findall(output):
        logging.getLogger("mkdocs.hooks").warning("%s fetches %s", page.file.src_uri, address)
