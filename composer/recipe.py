"""A recipe as its user holds it: loaded, checked on demand, and turned into whatever is asked of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Unpack

from blocks.core import Library, Part
from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Source, Span
from composer.diagnostics.render import in_order
from composer.graph.passes import compile_graph
from composer.graph.typed import TypedProgram
from composer.language.composition.extends import compose
from composer.language.composition.named_files import RecipeFile
from composer.language.composition.override import Override, Overrides, read_overrides
from composer.language.composition.overrides import with_overrides
from composer.language.source_file import file_hint, form_of, open_source
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import Document, YamlMapping
from composer.language.yaml.reader import read
from composer.language.yaml.writer import data_of, write
from composer.own_blocks import Blocks, library_with
from composer.package_data import zoo
from composer.weights.mapping import mistakes

if TYPE_CHECKING:
    import networkx as nx
    import torch

    from composer.cost.summary import Summary
    from composer.diff.difference import Difference
    from composer.draw.build.levels import Level
    from composer.draw.figure import Figure, Options
    from composer.lower import Model


def load(source: str | Path, overrides: Overrides = None, blocks: Blocks = ()) -> Recipe:
    """Load a recipe by its name in the zoo, from a file, or from its text.

    A recipe with mistakes is loaded all the same: `Recipe.check` lists them, and everything that needs a correct recipe raises
    them.

    Args:
        source: The name of a recipe of the zoo (`"gpt2"`), the path of a YAML file, or the text of a recipe.
        overrides: Values by path, `{"n_layers": 6, "layers.attn.body.mask": "full"}`, or strings `PATH=VALUE` as after `--set`.
        blocks: Block classes of your own, or Python files that define some.

    Raises:
        RecipeError: There is no such recipe or file, or the blocks cannot be used.

    Examples:
        >>> import composer
        >>> recipe = composer.load("gpt2", {"n_layers": 6})
        >>> recipe.name, recipe.task
        ('gpt2', 'causal_lm')
    """
    return Recipe(text_of(source), read_overrides(overrides), tuple(blocks))


def text_of(source: str | Path) -> Source:
    """Return the text that a name, a path or a text stands for.

    Raises:
        RecipeError: where there is none.
    """
    if isinstance(source, Path):
        return open_source(source)
    match form_of(source):
        case "text":
            return Source("<text>", source)
        case "path":
            return open_source(Path(source))
        case "name":
            return zoo_source(source)


def zoo_source(name: str, folder: Path = Path()) -> Source:
    """Return the text of a recipe that comes with the package; a file in the folder may be what was meant.

    Raises:
        RecipeError: where there is none.
    """
    names = zoo_names()
    if name in names:
        return Source(f"{name}.yaml", open_source(zoo() / f"{name}.yaml").text)
    nowhere = Span(Source(name, ""), 1, 1, 1, 1)
    wrong = unknown("unknown-recipe", nowhere, "recipe", name, names)
    ending = " (a file's name ends in .yaml)" if (folder / name).is_file() else ""
    hint = file_hint(name, folder) or wrong.hint or "`arco list` shows them all"
    raise RecipeError([Diagnostic(wrong.code, wrong.message + ending, nowhere, hint=hint)])


def zoo_names() -> list[str]:
    """Return the recipes that come with the package."""
    return sorted(file.stem for file in zoo().glob("*.yaml"))


def config_of(config: StrPath | Mapping[str, Any]) -> Source:
    """Return the text of a `config.json`."""
    if isinstance(config, Mapping):
        return Source("config.json", json.dumps(dict(config), indent=2, default=str))
    path = Path(config)
    return open_source(path / "config.json" if path.is_dir() else path)


@dataclass(frozen=True, eq=False)
class Recipe:
    """A recipe with what was set in it: a value, from which everything else is worked out when it is first asked for."""

    source: Source
    """The text as it was given."""
    overrides: tuple[Override, ...] = ()
    """What was set from outside, applied in order."""
    blocks: Sequence[type[Part] | Path | str] = ()
    """Blocks of one's own."""

    def __post_init__(self) -> None:
        _ = self.library  # blocks that cannot be used are no mistake of the recipe's

    def __reduce__(self) -> tuple[Any, ...]:
        if self._composed:  # what lies beside this recipe may not lie there where it is read again
            return Recipe, (Source(self.source.name, self.text), (), self.blocks)
        return Recipe, (self.source, self.overrides, self.blocks)

    @cached_property
    def library(self) -> Library:
        """Every block that the recipe may name."""
        return library_with(self.blocks)

    @cached_property
    def document(self) -> Document:
        """The text, read, with what was set in its place."""
        whole = compose(self._read, self.library, self._open)
        return with_overrides(whole, self.overrides, self.library)

    @cached_property
    def _read(self) -> Document:
        return read(self.source)

    @property
    def _composed(self) -> bool:
        """Whether other files are a part of the recipe."""
        return self._read.root is not None and ("extends" in self._read.root or "uses" in self._read.root)

    def _open(self, file: RecipeFile, folder: PurePosixPath) -> Source:
        """Return the text of a recipe that is named in a folder below this one's."""
        own = Path(self.source.name).parent
        return zoo_source(file.name, own / folder) if file.in_zoo else open_source(own / file.name)

    @property
    def text(self) -> str:
        """The recipe's text with everything that was set in it and all it is made of: what to keep beside a trained model."""
        root = self.document.root
        data = data_of(root) if root is not None and (self.overrides or self._composed) else None
        return write(data) if isinstance(data, dict) else self.source.text

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self._top("recipe")

    @property
    def doc(self) -> str:
        """What the recipe says about itself."""
        return " ".join(self._top("doc").split())

    @property
    def task(self) -> str | None:
        """What the model is for."""
        return self._top("task") or None

    @property
    def checkpoints(self) -> YamlMapping | None:
        """How the recipe maps to published checkpoints, by model type."""
        found = self.document.root.get("checkpoints") if self.document.root else None
        return found if isinstance(found, YamlMapping) else None

    def _top(self, key: str) -> str:
        value = data_of(node) if (root := self.document.root) and (node := root.get(key)) else ""
        return value if isinstance(value, str) else ""

    @cached_property
    def _outcome(self) -> tuple[TypedProgram | None, tuple[Diagnostic, ...]]:
        state = compile_graph(self.document, self.library)
        rules: Sequence[Diagnostic] = ()
        if state.expansion is not None and (weights := state.expansion.recipe.checkpoints) is not None:
            rules = mistakes(weights, state.program.params if state.program else None)
        return state.typed, (*state.diagnostics, *rules)

    def check(self) -> list[Diagnostic]:
        """Return every error and every warning, in the order of the file.

        Examples:
            >>> import composer
            >>> composer.load("gpt2").check()
            []
            >>> [mistake.code for mistake in composer.load("gpt2", {"n_heads": 7}).check()]
            ['indivisible']
        """
        return in_order(self._outcome[1])

    @property
    def program(self) -> TypedProgram:
        """The graph in which every value has a type.

        Raises:
            RecipeError: with every mistake.
        """
        errors = [each for each in self.check() if each.severity == "error"]
        typed = self._outcome[0]
        if errors or typed is None:
            raise RecipeError(errors)
        return typed

    def summary(self, lengths: Mapping[str, int] | None = None) -> Summary:
        """Return the tree of the model with its parameters, FLOPs and memory.

        Args:
            lengths: Lengths of the model's own axes, by name. By default the batch is 1, and every other axis is as long as the
                recipe's param `context` says.

        Raises:
            RecipeError: The recipe has errors, or an axis is not one of the model's.

        Examples:
            >>> import composer
            >>> summary = composer.load("gpt2").summary({"time": 512})
            >>> summary.costs.parameters
            124439808
        """
        from composer.cost.summarize import summarize

        return summarize(self.program, lengths or {})

    def draw(self, level: Level = "block", **options: Unpack[Options]) -> Figure:
        """Return a drawing of the model.

        Args:
            level: How much is shown: `"overview"`, `"block"` with the layers opened once, or `"full"` with every linear map.
            **options: See `composer.draw.figure.Options`; the most used are `expand`, nodes to be shown from inside, `highlight`,
                nodes that stay bright while all else fades, and `engine="dot"`, which lets Graphviz lay the drawing out.

        Raises:
            RecipeError: The recipe has errors.

        Examples:
            >>> import composer
            >>> figure = composer.load("gpt2").draw("overview", theme="dark")
            >>> figure.save("gpt2.svg")
        """
        from composer.draw.figure import draw

        return draw(self.program, level, **options)

    def _repr_svg_(self) -> str | None:
        """Return the picture in a notebook; none of a recipe with mistakes, which `check` tells."""
        wrong = any(each.severity == "error" for each in self.check())
        return None if wrong else self.draw(theme="auto").svg()

    def expand(self) -> str:
        """Return the recipe's text without shorthands: every edge and every slot is written out, repeats stay folded.

        Raises:
            RecipeError: The recipe has errors.

        Examples:
            >>> import composer
            >>> text = composer.load("gpt2").expand()
            >>> composer.load("gpt2").diff(composer.load(text)).equal
            True
        """
        from composer.graph.unparse.expanded_recipe import unparse

        return unparse(self.program)

    def diff(self, other: Recipe) -> Difference:
        """Return how another model differs from this one; nothing where the two are the same model, whatever their parts are
        called and however they are written.

        Args:
            other: The recipe of the second model.

        Raises:
            RecipeError: One of the recipes has errors.

        Examples:
            >>> import composer
            >>> gpt2 = composer.load("gpt2")
            >>> gpt2.diff(composer.load("gpt2", {"d_model": 768})).equal
            True
            >>> gpt2.diff(composer.load("gpt2", {"n_layers": 6})).equal
            False
        """
        from composer.diff.difference import compare

        return compare(self.program, other.program)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return the graph of the blocks, repeats folded.

        The attributes of nodes and edges are described at `composer.graph.networkx_view.view`.

        Raises:
            RecipeError: The recipe has errors.
        """
        from composer.graph.networkx_view import view

        return view(self.program)

    def export(self) -> str:
        """Return the model as the source of one Python file that needs nothing but torch.

        Raises:
            RecipeError: The recipe has errors.

        Examples:
            >>> import composer
            >>> source = composer.load("gpt2").export()
            >>> "import composer" in source
            False
        """
        from composer.lower import lower

        return lower(self.program).text

    def with_config(self, config: StrPath | Mapping[str, Any]) -> Recipe:
        """Return the recipe with the sizes of a published model.

        Args:
            config: The path of a `config.json` as transformers writes it, the folder around it, or its contents.

        Raises:
            RecipeError: The configuration is of another kind of model, or has an option that the recipe cannot express.
        """
        from composer.weights import config as published

        if self.checkpoints is None:
            raise RecipeError(
                [Diagnostic("checkpoints-unknown-type", "this recipe maps to no published model", Span(self.source, 1, 1, 1, 1))]
            )
        return self._with(
            published.overrides(self.checkpoints, config_of(config), lambda found: self._with(found).program.program.params)
        )

    def with_overrides(self, overrides: Overrides) -> Recipe:
        """Return the recipe with more values set from outside, after those that are."""
        return self._with(read_overrides(overrides))

    def _with(self, overrides: Iterable[Override]) -> Recipe:
        return replace(self, overrides=(*self.overrides, *overrides))

    def overridden(self, param: str) -> bool:
        """Return whether the value of a param was set from outside, and is not the recipe's own.

        >>> import composer
        >>> composer.load("gpt2", overrides={"n_layers": 2}).overridden("n_layers")
        True
        """
        params = self.document.root.get("params") if self.document.root is not None else None
        value = params.get(param) if isinstance(params, YamlMapping) else None
        value = value.get("default") if isinstance(value, YamlMapping) else value
        return value is not None and any(value.span.source is each.source for each in self.overrides)

    def compile(
        self,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        seed: int | None = None,
        *,
        allow_large: bool = False,
    ) -> Model:
        """Return the model as a plain torch module with initial weights.

        Args:
            device: Where the parameters are; `"meta"` allocates no memory.
            dtype: The type of the parameters.
            seed: Decides the initial weights; without one, torch's global generator does.
            allow_large: Build even weights of more than 64 GiB in fp32.

        Raises:
            RecipeError: The recipe has errors, or its weights are larger than 64 GiB in fp32 and neither `allow_large` is set nor
                the device is `meta`.

        Examples:
            >>> import composer, torch
            >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
            >>> model = composer.load("gpt2", tiny).compile(seed=0)
            >>> model(tokens=torch.tensor([[1, 2, 3]])).logits.shape
            torch.Size([1, 3, 61])
        """
        from composer.lower import compile

        return compile(self, device=device, dtype=dtype, seed=seed, allow_large=allow_large)
