"""How wide a text is: the widths of Helvetica, which Arial, Arimo and Liberation Sans share, so that no machine need be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_REGULAR = {
    188: "′",
    191: "'",
    222: "ijl’‘",
    260: "|",
    278: " !,./:;I[\\]ft·\u00a0",
    333: "()-`r²³¹“”",
    334: "{}",
    354: "″",
    355: '"',
    365: "ⁿ",
    389: "*",
    395: "τ",
    400: "°",
    446: "ε",
    469: "^",
    500: "Jcksvxyz↑↓γλκç",
    549: "≤≥≈√±÷",
    556: "#$0123456789?L_abdeghnopqu–θη«»äöüéèàñ",
    557: "δ",
    575: "β",
    576: "μ",
    578: "α",
    584: "+<=>~×−",
    611: "FTZß",
    617: "σ",
    618: "Σ",
    648: "φ",
    667: "&ABEKPSVXYÄ",
    668: "Δ",
    690: "π",
    713: "∞",
    722: "CDHNRUwÜ",
    748: "Ω",
    778: "GOQÖ",
    833: "Mm",
    834: "½",
    889: "%",
    944: "W",
    1000: "→…←—",
    1015: "@",
}
_BOLD = {
    238: "'",
    240: "′",
    278: " ,./I\\ijl·’‘\u00a0",
    280: "|",
    333: "!()-:;[]`ft²³¹",
    389: "*r{}",
    396: "ⁿ",
    400: "°",
    446: "τ",
    474: '"',
    475: "ε",
    479: "″",
    500: "z↑↓“”",
    541: "θ",
    549: "≤≥≈√±÷",
    556: "#$0123456789J_aceksvxy–γλ«»äéèàç",
    558: "κ",
    584: "+<=>^~×−",
    600: "Σ",
    606: "δ",
    610: "β",
    611: "?FLTZbdghnopquηöüßñ",
    612: "μ",
    615: "α",
    667: "EPSVXY",
    684: "σ",
    713: "∞",
    715: "φ",
    719: "Δ",
    722: "&ABCDHKNRUÄÜ",
    766: "π",
    778: "GOQwÖ",
    802: "Ω",
    833: "M",
    834: "½",
    889: "%m",
    944: "W",
    975: "@",
    1000: "→…←—",
}
"""Thousandths of the size, to the signs that are as wide."""
_WIDTHS = tuple({sign: width for width, signs in table.items() for sign in signs} for table in (_REGULAR, _BOLD))
_OTHER = 1000
"""What a sign is taken to be that the tables do not have: as wide as it is high."""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in letters of a size, kerning left out."""
    widths = _WIDTHS[bold]
    return sum(widths.get(sign, _OTHER) for sign in text) * size / 1000


def wrapped(parts: Sequence[str], between: str, fits: Callable[[str], bool]) -> list[str]:
    """Return the parts in as few lines as they fit; one that does not fit at all has a line of its own."""
    found: list[str] = []
    for part in parts:
        longer = f"{found[-1]}{between}{part}" if found else part
        if found and fits(longer):
            found[-1] = longer
        else:
            found.append(part)
    return found
