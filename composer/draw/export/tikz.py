"""A drawing as TikZ: a file that LaTeX compiles by itself, and that a paper may `\\input`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from composer.draw.export.marks import Circle, Ink, Mark, MarkGroup, MarkShape, Path, Rectangle, TextLine
from composer.draw.export.outlines import Outline, outlines
from composer.draw.export.svg import n, share
from composer.draw.geometry import Point
from composer.printable import printable

HEAD = r"""% Made by arco draw. LaTeX compiles this file as it is.
% To \input it: \usepackage{tikz}, \usepackage[T1]{fontenc}; for letters other than Helvetica, \newcommand\arcofont{\sffamily}.
\makeatletter
\ifx\documentclass\@twoclasseserror\else
  \RequirePackage{fix-cm}
  \documentclass{article}
  \usepackage[T1]{fontenc}
  \usepackage[paperwidth=%WIDTHbp,paperheight=%HEIGHTbp,margin=0bp]{geometry}
  \usepackage{tikz}
  \pagestyle{empty}
  \parindent=0pt \topskip=0pt
  \def\arcoend{\end{document}}
  \begin{document}
\fi
\makeatother
\providecommand\arcofont{\fontencoding{T1}\fontfamily{phv}}
"""
TAIL = r"""\ifdefined\arcoend\expandafter\arcoend\fi
"""
ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: rf"\{sign}" for sign in "$&#%_"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\u00a0": "~",
    "\u2009": r"\,",
    "\u202f": r"\,",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "°": r"\textdegree{}",
    "ᵀ": r"\textsuperscript{T}",
    "²": r"\textsuperscript{2}",
    "³": r"\textsuperscript{3}",
}
"""What stands in LaTeX for letters that it takes for something else, or that its usual fonts lack."""
SYMBOLS = {
    "×": "times", "÷": "div", "±": "pm", "−": "-", "→": "rightarrow", "←": "leftarrow", "↑": "uparrow", "↓": "downarrow",
    "√": "surd", "∞": "infty", "≤": "leq", "≥": "geq", "≠": "neq", "≈": "approx", "∈": "in", "∑": "sum", "∏": "prod",
    "⊕": "oplus", "⊗": "otimes", "⊙": "odot", "‖": "Vert", "∘": "circ", "∂": "partial", "∇": "nabla",
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta", "κ": "kappa",
    "λ": "lambda", "μ": "mu", "µ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "varphi",
    "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Σ": "Sigma", "Φ": "Phi",
    "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
"""What is a sign of mathematics, by the name of its command."""
MAX_OF_T1 = 0x17F
"""The last letter of the Latin alphabets that the encoding T1 has, nearly all of them."""


def tikz(width: float, height: float, marks: Sequence[Mark], scale: float = 1.0) -> str:
    """Return the text of a `.tex` file with a picture of `width` × `height` pixels of `scale` points each."""
    body = [*_marks(marks, scale, 1.0)]
    used = sorted({color for line in body for color in re.findall(r"\barco([0-9A-F]{6})\b", line)})
    size = {"%WIDTH": f"{width * scale + 1:.2f}", "%HEIGHT": f"{height * scale + 1:.2f}"}
    unit = f"{scale:.5g}bp"
    return "\n".join(
        (
            re.sub("%(?:WIDTH|HEIGHT)", lambda found: size[found[0]], HEAD).rstrip(),
            rf"\begin{{tikzpicture}}[x={unit},y=-{unit},inner sep=0pt,outer sep=0pt]",
            *(rf"\definecolor{{arco{color}}}{{HTML}}{{{color}}}" for color in used),
            rf"\useasboundingbox (0,0) rectangle ({n(width)},{n(height)});",
            *body,
            r"\end{tikzpicture}%",
            TAIL,
        )
    )


def _marks(marks: Sequence[Mark], scale: float, cover: float) -> Iterator[str]:
    """Yield the commands of marks, of which so much covers what lies below."""
    for mark in marks:
        match mark:
            case MarkGroup():
                yield from _group(mark, scale, cover * mark.opacity)
            case MarkShape():
                yield _shape(mark, scale, cover * mark.opacity)
            case TextLine():
                yield _text(mark, scale, cover)


def _group(group: MarkGroup, scale: float, cover: float) -> Iterator[str]:
    """Yield what belongs together; a box gets a name, by which arrows of one's own may lead to it."""
    data = dict(group.data)
    path = data.get("id") or " -> ".join(filter(None, (data.get("a"), data.get("b"))))
    if path:
        yield f"% {printable(path)}"
    yield from _marks(group.marks, scale, cover)
    place = next((mark.geometry for mark in group.marks if isinstance(mark, MarkShape)), None)
    name = re.sub(r"[^A-Za-z0-9_]+", "-", data.get("id", ""))
    if name and isinstance(place, Rectangle | Path) and group.kind.startswith("node"):
        points = [point for outline in outlines(place) for point in outline.points]
        (left, right), (top, bottom) = ((min(values), max(values)) for values in zip(*points, strict=True))
        size = f"minimum width={(right - left) * scale:.2f}bp,minimum height={(bottom - top) * scale:.2f}bp"
        yield rf"\node[{size}] ({name}) at {_point(((left + right) / 2, (top + bottom) / 2))} {{}};"


def _shape(shape: MarkShape, scale: float, cover: float) -> str:
    options: list[str] = []
    if shape.fill is not None:
        options += _ink("fill", shape.fill, cover)
    if (pen := shape.stroke) is not None:
        options += [*_ink("draw", pen.ink, cover), f"line width={pen.width * scale:.3g}bp"]
        if pen.dash:
            signs = ("on", "off")
            dashes = " ".join(f"{signs[at % 2]} {part * scale:.3g}bp" for at, part in enumerate(pen.dash))
            options.append(f"dash pattern={dashes}")
        if pen.round:
            options.append("line join=round")
    match shape.geometry:
        case Rectangle(x=x, y=y, width=width, height=height, radius=radius):
            if radius:
                options.append(f"rounded corners={min(radius, width / 2, height / 2) * scale:.3g}bp")
            way = f"{_point((x, y))} rectangle {_point((x + width, y + height))}"
        case Circle(x=x, y=y, radius=radius):
            way = f"{_point((x, y))} circle[radius={radius * scale:.3g}bp]"
        case geometry:
            way = " ".join(map(_outline, outlines(geometry)))
    return rf"\path[{','.join(options)}] {way};"


def _ink(what: str, ink: Ink, cover: float) -> list[str]:
    opaque = share(round(ink.cover * cover, 3))
    return [f"{what}=arco{ink.color.lstrip('#').upper()}", *([f"{what} opacity={opaque}"] if opaque != "1" else [])]


def _outline(outline: Outline) -> str:
    points = outline.points
    pieces = [_point(points[0])]
    for at in range(1, len(points) - 1, 3):
        one, two, end = points[at : at + 3]
        straight = one == points[at - 1] and two == end
        pieces.append(f"-- {_point(end)}" if straight else f".. controls {_point(one)} and {_point(two)} .. {_point(end)}")
    return " ".join(pieces) + (" -- cycle" if outline.closed else "")


def _text(line: TextLine, scale: float, cover: float) -> str:
    size = line.font.size * scale
    font = (
        rf"\arcofont\fontsize{{{size:.3g}bp}}{{{1.2 * size:.3g}bp}}" + (r"\bfseries" if line.font.bold else "") + r"\selectfont"
    )
    options = [f"anchor={ANCHORS[line.anchor]}", *_ink("text", line.ink, cover), f"font={{{font}}}"]
    return rf"\node[{','.join(options)}] at {_point((line.x, line.y))} {{{escaped(line.text)}}};"


def _point(point: Point) -> str:
    return f"({n(point[0])},{n(point[1])})"


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it; a letter that its fonts lack is told by its number."""
    return "".join(map(_letter, printable(text)))


def _letter(sign: str) -> str:
    if sign in SIGNS:
        return SIGNS[sign]
    if sign in SYMBOLS:
        name = SYMBOLS[sign]
        return rf"\ensuremath{{\{name}}}" if name.isalpha() else rf"\ensuremath{{{name}}}"
    if sign.isascii() or (sign.isalpha() and ord(sign) <= MAX_OF_T1):
        return sign
    return f"[U+{ord(sign):04X}]"
