"""Everything tried on one recipe: what holds, what does not, and which declaration of which block is not true."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blocks.core import standard
from composer.block_declarations import place_of
from composer.diagnostics import Declaration, Diagnostic, Label, Span, as_json, report
from composer.graph.row_mixing import mixing
from composer.graph.typed import TypedBlock
from composer.graph.visit import Visit, walk
from composer.verify.alone import NODE, alone, in_language_model
from composer.verify.declarations import TESTS, BlockAlone, DeclarationTest
from composer.verify.properties import PROPERTIES
from composer.verify.recipes import VerifiableRecipe
from composer.verify.shrink import shrunk
from composer.verify.subject import DoesNotApply, NotTried, Subject, Violation

SAID_BY = {"batch": {"rows"}, "causal": {"positions"}, "cached": {"positions", "causal"}}
"""Tests that say nothing new if others have failed."""
ENDS = ("types", "repeatable")
"""Tests whose failure leaves nothing to compare."""


WIRED = "no block alone does this: it is the way in which they are wired, or a mistake of Composer"
MIXED = "use another axis; as it is, what the model says of a row is chance, and gradients cannot be accumulated"
MASKED = "a query sees later keys: begin the mask with `causal and`"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `Recipe.verify`."""

    name: str
    """The recipe's name."""
    diagnostics: tuple[Diagnostic, ...]
    """What is not true: at the block's declaration, or in the recipe if no block alone is to blame."""
    held: tuple[str, ...]
    """The properties of the model that hold, by their names."""
    not_tried: Mapping[str, str]
    """Properties that could not be tried, with the reason."""
    blocks: tuple[str, ...]
    """Blocks of the user's own that were tried alone."""

    @property
    def ok(self) -> bool:
        """Whether everything that was tried holds."""
        return not self.diagnostics

    def __str__(self) -> str:
        if self.diagnostics:
            return report(self.diagnostics)
        own = f", and every declaration of {', '.join(self.blocks)}" if self.blocks else ""
        rest = "".join(f"\n  {name} not tried: {why}" for name, why in self.not_tried.items())
        return f"{self.name}: {len(self.held)} properties hold{own}{rest}"

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "recipe": self.name,
            "diagnostics": json.loads(as_json(list(self.diagnostics))),
            "held": list(self.held),
            "not_tried": dict(self.not_tried),
            "blocks": list(self.blocks),
        }


def verify(recipe: VerifiableRecipe) -> Verification:
    """Return what is true of a recipe without errors, at small sizes and in float64.

    Raises:
        RecipeError: The recipe has errors.
    """
    program = recipe.program
    own = tuple(recipe.library[kind] for kind in recipe.library if kind not in standard())
    recipe = type(recipe)(recipe.source, recipe.overrides, own)  # classes, so that no file is executed again
    small = Subject(shrunk(recipe))
    tried = _distinct(small)
    own_blocks = [visit for visit in tried if _block(visit).part.kind not in standard()]
    found = [each for visit in own_blocks for each in _of_block(visit, small, recipe)]
    held, broken, not_tried = _of_model(small)
    if broken and not found:
        found = [each for visit in tried if visit not in own_blocks for each in _of_block(visit, small, recipe)]
    if broken and not found:
        found = [_of_recipe(each, recipe) for each in broken]
    names = tuple(dict.fromkeys(_block(visit).part.kind for visit in own_blocks))
    return Verification(program.name, tuple(found), tuple(held), not_tried, names)


def _of_model(subject: Subject) -> tuple[list[str], list[Violation], dict[str, str]]:
    """Return which properties of the model hold, which do not, and which could not be tried."""
    held, broken, not_tried = [], [], {}
    for each in PROPERTIES:
        try:
            seen = list(each.try_(subject))
        except DoesNotApply:
            continue
        except NotTried as reason:
            not_tried[each.name] = str(reason)
            continue
        except Exception as error:
            broken.append(Violation(each.name, _raised(error)))
            continue
        broken += seen
        if not seen:
            held.append(each.name)
    for name in subject.running:
        not_tried["calls in a row"] = (
            f"every call renews `{name}`, so each is tried from the value that it has after a first call"
        )
    return held, broken, not_tried


def _distinct(subject: Subject) -> list[Visit]:
    """Return the blocks of a model at their places, the first of each class with equal fields and inputs."""
    found: dict[str, Visit] = {}
    for visit in walk(subject.program.root, once=True):
        if isinstance(visit.node, TypedBlock):
            types = {port: str(type_) for port, type_ in visit.node.inputs.items()}
            found.setdefault(f"{visit.node.part.kind} {visit.node.part!r} {types}", visit)
    return list(found.values())


def _block(visit: Visit) -> TypedBlock:
    assert isinstance(visit.node, TypedBlock)
    return visit.node


def _of_block(visit: Visit, around: Subject, recipe: VerifiableRecipe) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each declaration of a block that is not true."""
    block = _block(visit)
    own = alone(block, around.recipe)
    if own is None:
        return
    language_model = in_language_model(block, around.recipe)
    tried = BlockAlone(block, Subject(own), None if language_model is None else Subject(language_model))
    said: set[str] = set()
    for test in TESTS:
        if SAID_BY.get(test.name, set()) & said:
            continue
        try:
            seen = list(test.try_(tried))
        except NotTried:
            continue
        except Exception as error:
            yield _diagnostic(
                visit, test, _raised(error), "forward", "it is called with inputs of the declared types", recipe, error
            )
            return
        for each in seen[:1]:
            said.add(test.name)
            yield _diagnostic(visit, test, each.message, test.declaration, test.hint, recipe, None)
        if seen and test.name in ENDS:
            return


def _diagnostic(
    visit: Visit,
    test: DeclarationTest,
    message: str,
    declaration: str,
    hint: str,
    recipe: VerifiableRecipe,
    error: Exception | None,
) -> Diagnostic:
    """Return a diagnostic at a declaration of a block; for a block of the library, where the recipe uses it."""
    block, node = _block(visit), _node_span(visit, recipe)
    told = f"{block.part.kind}: {message.replace(f'`{NODE}.', '`')}"
    if block.part.kind in standard():  # no one can change its declarations
        said = {"causal": MASKED, "rows": MIXED}.get(test.name, WIRED if error is None else hint)
        return Diagnostic(test.name, told, node or _top(recipe), hint=said)
    labels = (Label(node, "used here"),) if node is not None else ()
    return Diagnostic(test.name, told, place_of(type(block.part), declaration, error), labels=labels, hint=hint)


def _of_recipe(broken: Violation, recipe: VerifiableRecipe) -> Diagnostic:
    """Return a diagnostic of a property for which no block is to blame."""
    mixed = next(mixing(recipe.program, training=False), None) if broken.property == "rows" else None
    if mixed is not None and not isinstance(mixed.span.source, Declaration):
        return Diagnostic(broken.property, broken.message, mixed.span, hint=MIXED)
    return Diagnostic(broken.property, broken.message, _top(recipe), hint=WIRED)


def _node_span(small: Visit, recipe: VerifiableRecipe) -> Span | None:
    """Return the node of the user's own recipe that a block of the small one is: that at its path, or else, where a smaller
    number has changed the paths, the first of its type.
    """
    kind = _block(small).part.kind
    alike = (visit for visit in walk(recipe.program.root) if isinstance(visit.node, TypedBlock) and visit.node.part.kind == kind)
    found = min(alike, key=lambda visit: visit.path != small.path, default=None)
    if found is None or isinstance(found.node.node.span.source, Declaration):
        return None
    return found.node.node.span


def _top(recipe: VerifiableRecipe) -> Span:
    line = recipe.source.lines[0]
    return Span(recipe.source, 1, 1, 1, len(line) + 1)


def _raised(error: Exception) -> str:
    words = " ".join(str(error).split())
    return f"raises {type(error).__name__}: {words[:300]}"
