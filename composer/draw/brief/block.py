"""A block in a closed box, in a few letters from the fullest form to the shortest, and how much it matters."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from blocks.core import Look
from composer.draw.diagram import Leaf, OpenMixture
from composer.draw.series import NUMBER, template
from composer.draw.structure import JOINED, SHORTCUT

MAX_FACT = 24
"""Letters of a fact that is told behind a title."""
DROPOUT = "dropout "
"""How what training does to a value begins, which maps alone tell."""
PADDING = re.compile(r"\b(\w+_)?valid\b")
"""Which positions count, in a formula: it leaves out padding, and says nothing of what a block is."""
SCALE = re.compile(r"× (\S+)")
"""A block that multiplies by a number, which beside others reads as how often something is there."""
MOVES, VECTORS, NORMS, BETWEEN, MAPS, OPERATIONS, MAIN = range(-1, 6)
"""How much blocks matter for what a box is."""
PARAMETER = "Parameter"
"""The title of learned numbers before their name has its place."""
LETTERS = {"BatchNorm": "BN", "LayerNorm": "LN", "GroupNorm": "GN", "RMSNorm": "RMS"}
"""What norms are called beside other blocks, as papers do."""
NUMBERS = ", "
"""What stands between the numbers that formulas name."""


@dataclass(frozen=True, slots=True)
class Brief:
    """A block in a closed box."""

    forms: tuple[str, ...]
    """From the fullest to the shortest."""
    weight: int
    """What is left out last: `MAIN` for what its class calls in few letters and blocks of the recipe, then `OPERATIONS` with the
    formula whose value the box gives, `MAPS`, activations and other formulas that stand `BETWEEN` these, `NORMS`, `VECTORS` that
    are read as they are with dropout, and what `MOVES` values.
    """
    sides: tuple[str, ...] = ()
    """The positions that act on it."""
    computes: bool = True
    """Whether it tells passes apart that differ in it: it reads something, and is no norm or the like."""
    times: int = 1
    """How often it is there, one after the other, as a block of a repeat."""
    turn: str = ""
    """The path of that repeat, whose blocks follow one another in each pass."""
    then: str = ""
    """The norm and the activation behind it, where it stands for a box around all; or dropout."""
    shortcut: tuple[str, ...] = ()
    """The map on the skip connection around it and what is before it, from the fullest form to the shortest."""
    behind: bool = False
    """Whether it comes behind the sum at the end of a skip connection."""
    branched: tuple[tuple[str, ...], ...] = ()
    """Of branches, the forms with norms and activations in them, then those without norms, where such are told beside them."""
    numbers: tuple[str, ...] = ()
    """What a formula calls numbers by name, with these: `shrink 2`."""

    @property
    def kind(self) -> str:
        """What is shortened together: its shortest form without numbers, and without what goes around it."""
        return template(self.forms[-1])

    @property
    def shortest(self) -> int:
        """By how much it can be shortened."""
        return max(len(self.forms), len(self.shortcut)) - 1

    def shortened(self, by: int) -> str:
        """Return it in a form so much shorter than the fullest."""
        return self.forms[min(by, len(self.forms) - 1)]

    def said(self, by: int) -> tuple[str, ...]:
        """Return what is told of it in a form so much shorter than the fullest, with what stands behind it and around both."""
        said = [self.shortened(by), *(self.then.split(" · ") if self.then else [])]
        if self.shortcut:
            said[-1] += f"{SHORTCUT}{self.shortcut[min(by, len(self.shortcut) - 1)]}"
        return tuple(said)

    def without_norms(self) -> Brief:
        """Return it without the norms behind it and on the skip connection."""
        norms = LETTERS.values()
        then = " · ".join(said for said in self.then.split(" · ") if said not in norms)
        around = tuple(", ".join(said for said in form.split(", ") if said not in norms) for form in self.shortcut)
        return replace(self, then=then, shortcut=around, branched=self.branched[1:])

    def with_branched(self, by: int) -> Brief:
        """Return it with what stands in its branches beside maps, in a form so much shorter than the fullest."""
        forms = next(iter(self.branched), ())
        return replace(self, forms=(forms[min(by, len(forms) - 1)], *self.forms)) if forms else self


def scaled(form: str) -> str:
    """Return what a block says, in words where it multiplies by a number."""
    scale = SCALE.fullmatch(form)
    return f"scaled by {scale[1]}" if scale else form


def is_held(one: Brief, item: Leaf | OpenMixture, reads: Collection[str]) -> bool:
    """Return whether a block is parameters or a table, which read nothing and stand ready before anything runs."""
    return item.about.path not in reads and (item.about.parameters > 0 or one.weight == MOVES)


def worth_telling(one: Brief) -> bool:
    """Return whether a block is told where it stands in a branch: what a box is made of."""
    return one.weight > BETWEEN


def brief_of(item: Leaf | OpenMixture, *, reads: bool, gives: bool = False) -> Brief:
    """Return a block in few letters, given whether it reads something, and whether its value is what the box around it gives."""
    if isinstance(item, OpenMixture):
        return Brief(item.brief, MAIN)
    look = item.look
    if look.sign:
        return Brief((JOINED[look.sign][-1],), BETWEEN)
    sides = tuple(side.title for side in look.sides)
    if look.brief or look.short:
        forms = look.brief or (look.short,)
        then = forms[0].partition(" · ")[2]
        return Brief(tuple(form.partition(" · ")[0] for form in forms), MAIN, sides, then=then)
    if look.operation or look.formula:
        kept = reads and not PADDING.search(look.formula)
        weight = OPERATIONS if look.operation or gives else BETWEEN if kept else MOVES
        return Brief(look.operation or (look.formula,), weight, sides, numbers=named_numbers(look))
    if is_activation(look):
        plain = look.title if sum(map(str.isupper, look.title)) > 1 else look.title[:1].lower() + look.title[1:]  # not `ReLU`
        return Brief((plain,), BETWEEN if reads else MOVES, sides, computes=reads)
    number = next((fact for fact in look.facts if NUMBER.search(fact)), "").removesuffix(" + bias")
    title = item.about.path.rpartition(".")[2] if is_parameter(item) and not reads else look.title
    comma = "," if number.startswith("starts ") else ""  # else, it is what the title calls that starts there
    told = (f"{title}{comma} {number}", title) if 0 < len(number) <= MAX_FACT else (title,)
    given = not reads and not item.about.parameters and look.hue != "embed"  # such as a table that is computed
    held = {True: MAPS, False: VECTORS}[" × " in number] if is_parameter(item) and not reads else MAPS  # a table or a vector
    weight = MOVES if given else {"norm": NORMS, "merge": MOVES, "io": MOVES}.get(look.hue, held)
    return Brief(told, weight, sides, computes=reads and look.hue not in ("norm", "merge", "io"))


def named_numbers(look: Look) -> tuple[str, ...]:
    """Return what a formula calls numbers by name, with these: `shrink 2`."""
    return tuple(fact.replace(" = ", " ") for fact in look.facts if " = " in fact)


def is_parameter(item: Leaf) -> bool:
    """Return whether a block is nothing but numbers that are learned, of which its name tells more than its title."""
    return item.about.parameters > 0 and (item.look.title == PARAMETER or item.array)


def is_activation(look: Look) -> bool:
    """Return whether a block is a function of each number by itself."""
    return look.hue == "ffn" and not look.short and not look.brief
