"""Figures for LaTeX: they compile by themselves and inside of a paper, and print every text as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import composer
from composer.draw.export.tikz import SIGNS, SYMBOLS, escaped
from composer.draw.figure import Figure
from tests.draw.checks import texts

LATEX = shutil.which("pdflatex")
needs_latex = pytest.mark.skipif(
    LATEX is None, reason="TIKZ IS NOT COMPILED: no LaTeX here (apt-get install texlive-pictures texlive-fonts-recommended)"
)
HOSTILE = r"\input{/etc/passwd} $x_1^2$ 100% #1 & ~{} \end{document} 中 é √θ → ‖"
NODE = re.compile(r"^\\node\[.*?\\selectfont\}\] at \(([\d.-]+),([\d.-]+)\) \{(.*)\};$")
PAPER = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{tikz}
\newcommand\arcofont{\sffamily}
\begin{document}
\noindent\input{figure.tex}\par The end.
\end{document}
"""


def tex(figure: Figure, folder: Path, name: str = "figure.tex") -> str:
    """Return the text of a figure's file, which is written."""
    figure.save(folder / name)
    return (folder / name).read_text(encoding="utf-8")


def printed(text: str) -> str:
    """Return what LaTeX prints of a text, read by someone who knows its commands and not who wrote it."""
    commands = {f"\\ensuremath{{\\{name}}}": sign for sign, name in SYMBOLS.items() if name.isalpha()}
    commands |= {"\\ensuremath{-}": "−"} | {command: sign for sign, command in SIGNS.items() if command.startswith("\\")}
    pattern = "|".join(map(re.escape, sorted(commands, key=len, reverse=True)))
    rest = re.sub(pattern, "", text)
    assert not re.search(r"[\\{}$&#%_^]", rest), f"LaTeX takes something of `{text}` for a command"
    return re.sub(pattern, lambda found: commands[found[0]], text)


@pytest.mark.parametrize("name", ["gpt2", "gemma3", pytest.param("t5", marks=pytest.mark.slow)])
def test_every_text_stands_in_the_file(name: str, tmp_path: Path) -> None:
    """Where the scene has it, upright on the page, and nothing else."""
    figure = composer.load(name).draw()
    found = [NODE.match(line) for line in tex(figure, tmp_path).splitlines()]
    read = sorted((round(float(one[1]), 1), round(float(one[2]), 1), printed(one[3])) for one in found if one)
    spaces = str.maketrans("\u00a0\u2009\u202f", "   ")
    there = sorted((round(one.x, 1) + 0.0, round(one.y, 1) + 0.0, one.text.translate(spaces)) for one in texts(figure.scene))
    assert [(x, y, said.replace("~", " ").translate(spaces)) for x, y, said in read] == there


def test_boxes_have_names_for_arrows_of_ones_own(tmp_path: Path) -> None:
    """Their paths, with dashes in place of dots, which TikZ takes for anchors; and braces are balanced."""
    figure = composer.load("gpt2").draw()
    text = tex(figure, tmp_path)
    names = re.findall(r"^\\node\[minimum width.*\] \(([\w-]+)\) at", text, re.MULTILINE)
    assert names == [box.about.path.replace(".", "-").replace("outputs/", "outputs-") for box in figure.scene.boxes]
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}") and "%WIDTH" not in text


def test_a_hostile_text_stays_text(tmp_path: Path) -> None:
    """No command of its own, no end of the line, and what the fonts lack by its number."""
    assert printed(escaped(HOSTILE)) == HOSTILE.replace("中", "[U+4E2D]")
    text = tex(composer.load("gpt2").draw(title=HOSTILE, caption="\n\\end{tikzpicture}", labels={"norm": HOSTILE}), tmp_path)
    assert "\\input{/etc" not in text and text.count("\\end{tikzpicture}") == 1 and text.count("\\end{document}") == 1


@needs_latex
@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"title": HOSTILE, "theme": "slide"}, {"direction": "right", "color": "params"}], ids=str
)
def test_it_compiles_by_itself_and_in_a_paper(options: dict[str, str], tmp_path: Path) -> None:
    """Into one page of its own size; and inside of a document with other letters."""
    tex(composer.load("gemma3").draw(**options), tmp_path)  # type: ignore[arg-type]
    (tmp_path / "paper.tex").write_text(PAPER, encoding="utf-8")
    for name in ("figure", "paper"):
        command = [str(LATEX), "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert said.returncode == 0, said.stdout[-2000:]
        assert f"Output written on {name}.pdf" in said.stdout
    log = (tmp_path / "figure.log").read_text(errors="replace")
    assert "figure.pdf (1 page," in log and not re.search("Missing character|Overfull", log)
