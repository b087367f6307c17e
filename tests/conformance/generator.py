"""Random recipes: a stream that scenarios extend, each with one thing that the language can say."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import composer
from blocks.core import standard
from blocks.core.part import Activation
from composer.language.recipe.writer import write
from tests.conformance.declared import INPUTS, TRIES, Declared, single

COUNT = 340
"""At least twice as many as there are scenarios, so that each comes first in either kind of model."""
FIRST = COUNT // 2
"""The recipes of the tests that a change must pass: each scenario comes first in one kind of model, and in the other kind where
tests are exhaustive.
"""
PATIENCE = 16
"""How often a recipe is drawn before it is given up to be a model of this kind."""
Graph = dict[str, Any]
HARMFUL = [
    "norm",
    "x",
    "self",
    "del",
    "values",
    "forward",
    "train",
    "weight",
    "y",
    "mask",
    "position_ids",
    "class",
    "cache",
    "source",
    "recipe",
    "losses",
    "torch",
    "nn",
    "F",
    "modules",
    "parameters",
    "print",
    "len",
    "sum",
    "layer",
    "keep",
    "body",
    "add",
    "type_",
    "output",
    "Output",
    "Module",
    "call",
    "apply",
    "half",
    "float",
    "to",
    "eval",
    "data",
]
"""Names that code around a node may want for itself."""


class Unfit(Exception):
    """A draft that cannot be finished."""


class Draft:
    """A recipe that is being written; every stage takes the stream, [batch, time, width], and gives the stream."""

    def __init__(self, seed: int, attempt: int, *, causal: bool) -> None:
        self.random = Random(f"recipe {seed} {attempt}")
        self.causal = causal
        self.task = "causal_lm" if self.causal else ""
        self.library = standard()
        self.width = self.random.choice([8, 16, 24])
        self.declared = Declared(self.library, self.random, causal=self.causal, width=self.width)
        self.params: dict[str, Any] = {"vocab": "11", "width": str(self.width)}
        self.inputs: dict[str, Any] = {"tokens": "int[batch, time]"}
        self.graph: Graph = {"embed": {"type": "embedding", "vocab": "vocab", "dim": "width"}}
        self.head: dict[str, Any] = {"type": "linear", "out": "vocab", "bias": self.random.choice(["true", "false"])}
        self.outputs: dict[str, str] = {}
        self.init: dict[str, Any] = {}
        self.blocks: dict[str, Any] = {}
        self.uses: list[str] = []
        self.positions: dict[str, str] = {}
        self.losses: dict[str, Any] = {}
        self.unused = self.random.sample(HARMFUL, len(HARMFUL))
        self.others = 0

    def name(self) -> str:
        """Return a name that no node has: every other one a harmful one."""
        if self.unused and self.random.random() < 0.5:
            return self.unused.pop()
        self.others += 1
        return f"n{self.others}"

    def reserve(self, name: str) -> None:
        """Reserve a name, which no node has from now on."""
        if name not in self.unused and name in HARMFUL:
            raise Unfit(f"a node is called {name}")
        self.unused = [other for other in self.unused if other != name]

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    @property
    def above(self) -> str:
        """The stream's latest node."""
        return next(reversed(self.graph))

    @property
    def text_ids(self) -> str:
        """The input with the ids of the text, which a task may call otherwise."""
        return "tokens" if "tokens" in self.inputs else "target"

    def rename_text_ids(self, name: str) -> None:
        """Give the ids of the text another name, before any node reads them by the one that they have."""
        if re.search(rf"\b{self.text_ids}\b", f"{self.graph} {self.losses}"):
            raise Unfit(f"a node reads {self.text_ids}")
        self.inputs = {name: self.inputs.pop(self.text_ids), **self.inputs}

    def add(self, node: Any) -> str:
        """Return the stream's next node."""
        name = self.name()
        self.graph[name] = node
        return name

    def body(self, *nodes: Any) -> Graph:
        """Return a graph of its own."""
        return {self.name(): node for node in nodes}

    # -- nodes

    def block(self, kind: str) -> Any:
        """Return a block whose output is of the type of its stream, drawn until the composer accepts it."""
        for _ in range(TRIES):
            node = self.declared.use(self.library[kind])
            if self.fits(node):
                return node
        raise Unfit(f"nothing that was drawn for {kind} keeps a stream of width {self.width}")

    def fits(self, node: Any) -> bool:
        """Return whether a node, alone on the stream, is accepted and keeps its type."""
        text = write(
            {
                "recipe": "fits",
                "inputs": {"x": f"float[batch, time, {self.width}]", **INPUTS},
                "graph": {"node": node, "same": {"type": "add", "in": ["x", "node"]}},
            }
        )
        recipe = composer.load(text)
        if any(found.severity == "error" for found in recipe.check()):
            return False
        root = recipe.program.root
        return root.inputs["x"].sizes == root["node"].outputs[next(iter(root["node"].outputs))].sizes  # type: ignore[union-attr]  # one value

    def attention(self, **fields: Any) -> Any:
        """Return an attention whose heads fit the stream; `fields` win."""
        heads = self.pick(2, 4)
        return {"type": "attention", "heads": str(heads), "mask": self.declared.mask(), **fields}

    def feed(self) -> Any:
        return self.pick(
            "ffn", {"type": "gated_ffn", "hidden": "width + 3"}, {"type": "ffn", "hidden": "2 * dim", "activation": "silu"}
        )

    def feed_mapping(self) -> dict[str, Any]:
        """Return a feed-forward layer to which keys can be added."""
        return {"type": "ffn", "hidden": self.pick("6", "2 * dim"), "bias": self.pick("true", "false")}

    def residual(self, body: Any, **fields: Any) -> Any:
        return {"type": "residual", "norm": self.pick("rmsnorm", "layernorm"), "body": body, **fields}

    def text(self) -> str:
        graph = {**self.graph, "head": self.head}
        for name in sorted(self.declared.read):
            self.inputs.setdefault(name, INPUTS[name])
        recipe = {
            "recipe": "generated",
            "task": self.task,
            "uses": self.uses,
            "params": self.params,
            "blocks": self.blocks,
            "inputs": self.inputs,
            "graph": graph,
            "outputs": {"logits": "head", **self.outputs},
            "positions": self.positions,
            "losses": self.losses,
            "init": self.init,
        }
        return write({key: value for key, value in recipe.items() if value})


@cache
def scenarios() -> dict[str, Callable[[Draft], None]]:
    """Return what is written in turn: each block of the library that a stream flows through, and all
    that the language can say.
    """
    from tests.conformance import scenarios as written

    def stage(kind: str) -> Callable[[Draft], None]:
        def add(draft: Draft) -> None:
            draft.causal = draft.causal and not standard()[kind].batch_dependent  # means over all positions know the future
            if issubclass(standard()[kind], Activation):
                draft.add("rmsnorm")  # large numbers saturate one, through which no gradient goes then
            draft.add(draft.block(kind))

        return add

    blocks = {kind: stage(kind) for kind, part in standard()._parts.items() if part.outputs and single(part)}
    return {**blocks, **written.SCENARIOS}


GENERATED_WRONG = frozenset({"dead-node", "rejected", "indivisible", "type-mismatch", "not-causal", "optional-edge"})
"""What scenarios may get wrong together, one overwriting what another reads, choosing heads that do not fit, or wiring the
other's input, which may be absent, where it must not be.
"""


@cache
def generated(seed: int) -> str:
    """Return the recipe of a number: drawn again where its scenarios do not go together."""
    known = list(scenarios().values())
    turn, first = divmod(seed, len(known))
    for attempt in range(TRIES):
        causal = (turn + first + attempt // PATIENCE) % 2 == 0  # so that each scenario comes first in either kind of model
        draft = Draft(seed, attempt, causal=causal)
        try:
            for scenario in [known[first], *draft.random.sample(known, draft.random.randint(1, 2))]:
                scenario(draft)
        except Unfit:
            continue
        wrong = {found.code for found in composer.load(draft.text()).check() if found.severity == "error"}
        assert wrong <= GENERATED_WRONG, (wrong, draft.text())
        if not wrong:
            return draft.text()
    raise AssertionError(f"recipe {seed} cannot be drawn")
