"""The public `Recipe`: loading, checking, and everything that is computed from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, Unpack

from blocks.core import Library, Part
from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Source, Span
from composer.diagnostics.render import in_order
from composer.graph.passes import compile_graph
from composer.graph.passes.compilation import Compilation
from composer.graph.typed import TypedProgram
from composer.language.composition.apply_overrides import with_overrides, without_unused
from composer.language.composition.extends import compose
from composer.language.composition.named_files import Opener, RecipeFile
from composer.language.composition.override import Override, Overrides, read_overrides
from composer.language.recipe.writer import data_of, write
from composer.language.source_file import file_hint, form_of, mode_of, open_source, open_within
from composer.language.suggestions import did_you_mean, suggest
from composer.language.yaml.nodes import Document, YamlMapping
from composer.language.yaml.reader import read
from composer.own_blocks import library_with
from composer.package_data import zoo
from composer.weights.check_config import config_mistakes
from composer.weights.check_rules import as_variant, at_map, each_map, misfits, mistakes, once

if TYPE_CHECKING:
    import networkx as nx
    import torch
    from numpy.typing import NDArray

    from composer.cost.summary import Summary
    from composer.diff.difference import Difference
    from composer.draw.build.levels import Level
    from composer.draw.figure import Figure
    from composer.draw.figure_sheet import FigureSheet
    from composer.draw.options import Options
    from composer.lower import Model
    from composer.lower.model import Lowering
    from composer.verify.verification import Verification
    from composer.weights.config import ConfigReading


def text_of(source: str | Path) -> Source:
    """Return the source of a recipe, given its name, its path or its text.

    Raises:
        RecipeError: There is no such recipe or file.
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
    """Return the text of a recipe in the zoo; if there is none, the hint may suggest a file in the folder.

    Raises:
        RecipeError: There is no such recipe.
    """
    names = zoo_names()
    if name in names:
        return Source(f"{name}.yaml", open_source(zoo() / f"{name}.yaml").text)
    nowhere = Span(Source(name, ""), 1, 1, 1, 1)
    path = folder / name
    mode = mode_of(path)
    aside = " (a file's name ends in .yaml)" if S_ISREG(mode) else " (this is a folder)" if S_ISDIR(mode) else ""
    offered = suggest(name, names)
    hint = file_hint(name, folder) or (did_you_mean(offered) if offered else "`arco list` lists all recipes")
    raise RecipeError([Diagnostic("unknown-recipe", f"there is no such recipe{aside}", nowhere, hint=hint)])


def zoo_names() -> list[str]:
    """Return the names of the recipes that come with the package."""
    return sorted(file.stem for file in zoo().glob("*.yaml"))


def config_of(config: StrPath | Mapping[str, Any]) -> Source:
    """Return the text of a `config.json`."""
    if isinstance(config, Mapping):
        return Source("config.json", json.dumps(dict(config), indent=2, default=str))
    path = Path(config)
    return open_source(path / "config.json" if path.is_dir() else path)


@dataclass(frozen=True, eq=False)
class Recipe:
    """A recipe with its overrides: an immutable value, from which everything else is computed on first use.

    Examples:
        >>> import composer
        >>> recipe = composer.load("gpt2", {"n_layers": 6})
        >>> recipe.check()
        []
        >>> recipe.summary().costs.parameters
        81912576
    """

    source: Source
    """The original text."""
    overrides: tuple[Override, ...] = ()
    """Values set from outside, applied in order."""
    blocks: Sequence[type[Part] | Path | str] = ()
    """Block classes of the user, or Python files that define some."""
    opener: Opener | None = field(default=None, repr=False)
    """Opens the files that it extends and uses; by default, those of its own folder."""
    published: Path | None = None
    """Its published weights, a file or a folder; None for a recipe that was not loaded from a published folder."""

    def __post_init__(self) -> None:
        _ = self.library  # unusable blocks are not a mistake in the recipe: raise now

    def __repr__(self) -> str:
        overrides = ", ".join(repr(str(each)) for each in self.overrides)
        return f"Recipe({self.source.name!r}{f', [{overrides}]' if overrides else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._composed:  # the files that it extends or uses may be missing where it is unpickled
            return Recipe, (Source(self.source.name, self.text), (), self.blocks, None, self.published)
        return Recipe, (self.source, self.overrides, self.blocks, None, self.published)

    @cached_property
    def library(self) -> Library:
        """All blocks that the recipe can name."""
        return library_with(self.blocks)

    @cached_property
    def document(self) -> Document:
        """The parsed YAML, with everything that it extends and uses, and with its overrides."""
        whole = compose(self._read, self.library, self._open)
        return with_overrides(whole, self.overrides, self.library)

    @cached_property
    def _read(self) -> Document:
        return read(self.source)

    @property
    def _composed(self) -> bool:
        """Whether the recipe extends or uses other files."""
        return self._read.root is not None and ("extends" in self._read.root or "uses" in self._read.root)

    def _open(self, file: RecipeFile, folder: PurePosixPath) -> Source:
        """Return the text of a recipe that is named by a file in a folder below this one's."""
        if self.opener is not None:
            return self.opener(file, folder)
        own = Path(self.source.name).parent
        return zoo_source(file.name, own / folder) if file.in_zoo else open_within(own, file.name)

    @property
    def text(self) -> str:
        """The recipe as one text, with its overrides and everything that it extends or uses, to store with a trained model.

        It is without what a change leaves idle: params that nothing reads anymore, and rules for published weights that do not
        fit the changed model.
        """
        root = self.document.root
        data = data_of(without_unused(root)) if root is not None and (self.overrides or self._composed) else None
        if not isinstance(data, dict):
            return self.source.text
        for model_type in self._rules[1]:
            del data["checkpoints"][model_type]
        if not data.get("checkpoints", True):
            del data["checkpoints"]
        return write(data)

    def without_adapters(self) -> Recipe:
        """Return the recipe without `adapters`, which trains all that `trainable` does not exclude; itself if it has none.

        Examples:
            >>> import composer
            >>> recipe = composer.load("extends: gpt_mini\\nrecipe: tuned\\nadapters: {'*.q': {rank: 4}}\\n")
            >>> recipe.summary().costs.trainable, recipe.without_adapters().summary().costs.trainable
            (4096, 796160)
        """
        root = self.document.root
        if root is None or "adapters" not in root:
            return self
        entries = tuple(entry for entry in root.entries if entry.key.text != "adapters")
        data = data_of(without_unused(YamlMapping(entries, root.span)))
        assert isinstance(data, dict)
        return Recipe(Source(self.source.name, write(data)), (), self.blocks, None, self.published)

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self._top("recipe")

    @property
    def doc(self) -> str:
        """The recipe's description."""
        return " ".join(self._top("doc").split())

    @cached_property
    def task(self) -> str | None:
        """The recipe's task, such as `causal_lm`; None without one."""
        return self._top("task") or None

    @property
    def checkpoints(self) -> YamlMapping | None:
        """The mapping to published checkpoints, by model type."""
        found = self.document.root.get("checkpoints") if self.document.root else None
        return found if isinstance(found, YamlMapping) else None

    def _top(self, key: str) -> str:
        value = data_of(node) if (root := self.document.root) and (node := root.get(key)) else ""
        return value if isinstance(value, str) else ""

    @cached_property
    def _compiled(self) -> Compilation:
        return compile_graph(self.document, self.library)

    @cached_property
    def _outcome(self) -> tuple[TypedProgram | None, tuple[Diagnostic, ...]]:
        state = self._compiled
        return state.typed, (*state.diagnostics, *self._rules[0], *self._figure[1])

    @cached_property
    def _lowering(self) -> Lowering:
        """The source of the model, and what else its models share: compiled again, only the weights are new."""
        from composer.lower.build import lowering

        return lowering(self.program)

    @cached_property
    def _figure(self) -> tuple[FigureSheet | None, Sequence[Diagnostic]]:
        """The figure sheet in the recipe, and what is wrong with it."""
        state = self._compiled
        if state.document.root is None or "figure" not in state.document.root:
            return None, ()
        from composer.draw.figure_sheet import check_sheet, sheet_under

        sheet, wrong = sheet_under(state.document.root)
        if sheet is not None and not wrong and state.typed is not None:
            wrong = check_sheet(state.typed, sheet)
        return sheet, wrong

    @cached_property
    def _rules(self) -> tuple[Sequence[Diagnostic], frozenset[str]]:
        """What is wrong with the rules and the `config` of published models, and the types of those that a variant does not fit:
        these have one warning each.
        """
        state, unfit = self._compiled, set[str]()
        if state.expansion is None or (weights := state.expansion.recipe.checkpoints) is None:
            return (), frozenset()
        if state.typed is None:
            params = state.program.params if state.program else None
            formal = [each for entry, alone in each_map(weights) for each in at_map(mistakes(alone, params), entry)]
            return once(formal), frozenset()
        rules: list[Diagnostic] = []
        for entry, alone in each_map(weights):
            config = config_mistakes(alone, state.document, state.library, state.typed.untyped.params)
            found = [*misfits(alone, state.typed), *config]
            wrong = [each for each in found if each.severity == "error"]
            if wrong and self._is_variant and not self._had_before(wrong):
                unfit.add(entry.key.text)
                found = as_variant(wrong)
            rules += found if self._is_variant else at_map(found, entry)
        return once(rules), frozenset(unfit)

    def _had_before(self, wrong: Sequence[Diagnostic]) -> bool:
        """Return whether the recipe has any of these errors without its overrides too."""
        before = {(each.code, str(each.span)) for each in replace(self, overrides=()).check()} if self.overrides else set()
        return any((each.code, str(each.span)) in before for each in wrong)

    @property
    def _is_variant(self) -> bool:
        """Whether the model is not the one for which the rules under `checkpoints` were written: another file or an override
        changes it, other than by the params that it offers.
        """
        state = self._compiled
        assert state.expansion is not None and state.typed is not None
        params = state.typed.untyped.params
        own, rules = state.expansion.recipe.name_scalar.span.source, state.expansion.recipe.checkpoints or ()
        return any(entry.key.span.source != own for entry in rules) or any(
            len(each.path) > 1 or each.path[0].text not in params for each in self.overrides
        )

    def check(self) -> list[Diagnostic]:
        """Return all errors and warnings, in the order of the file; an empty list for a correct recipe.

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
        """The typed program: the graph in which every value has a type.

        Raises:
            RecipeError: The recipe has errors.

        Examples:
            >>> import composer
            >>> [node.name for node in composer.load("gpt2").program.root.nodes][:2]
            ['embed', 'positions']
        """
        errors = [each for each in self.check() if each.severity == "error"]
        typed = self._outcome[0]
        if errors or typed is None:
            raise RecipeError(errors)
        return typed

    def summary(self, lengths: Mapping[str, int] | None = None) -> Summary:
        """Return the summary of the model: its nodes with shapes, parameters, FLOPs and memory.

        Args:
            lengths: Lengths of the model's axes, by name. By default, `batch` is 1, `height` and `width` are 224, and every other
                axis has the length of the recipe's param `context`, or 1024 without one.

        Raises:
            RecipeError: The recipe has errors, or no axis of its inputs has one of these names.

        Examples:
            >>> import composer
            >>> summary = composer.load("gpt2").summary({"time": 512})
            >>> summary.costs.parameters
            124439808
        """
        from composer.cost.summarize import summarize

        return summarize(self.program, lengths or {})

    def draw(self, level: Level | None = None, *, sheet: StrPath | None = None, **options: Unpack[Options]) -> Figure:
        """Return a figure of the model.

        Args:
            level: The level of detail: `"overview"`, `"block"` with open layers, or `"full"` with every linear map; by default
                that of the sheet or of the recipe's `figure`, else `"block"`.
            sheet: A file with options, which hold where they are not given here; those under `figure` in the recipe hold where
                the file has none.
            **options: See `composer.draw.figure.Options`; the most common are `open`, nodes whose inside is shown, `highlight`,
                nodes that are not faded, and `engine="dot"`, for a layout by Graphviz.

        Raises:
            RecipeError: The recipe or the sheet has errors.
            NotDrawn: An option has a value that cannot be drawn, such as a node that does not exist.

        Examples:
            >>> import composer
            >>> figure = composer.load("gpt2").draw("overview", theme="dark")
            >>> figure.save("gpt2.svg")
        """
        from composer.draw.figure import draw
        from composer.draw.figure_sheet import draw_sheet, read_sheet

        program, own = self.program, self._figure[0]
        given = None if sheet is None else read_sheet(sheet)
        said = given.over(own) if given and own else given or own
        return draw(program, level or "block", **options) if said is None else draw_sheet(program, said, level, options)

    def _repr_svg_(self) -> str | None:
        """Return the figure for a notebook; None if the recipe has errors."""
        wrong = any(each.severity == "error" for each in self.check())
        return None if wrong else self.draw(theme="auto").svg()

    def expand(self) -> str:
        """Return the text of the recipe with every edge and every slot written out; repeats stay folded.

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
        """Return how another model differs from this one, independent of how the recipes are written and their nodes named.

        Args:
            other: The recipe of the second model.

        Raises:
            RecipeError: One of the recipes has errors.
            TypeError: The other is not a recipe.

        Examples:
            >>> import composer
            >>> gpt2 = composer.load("gpt2")
            >>> gpt2.diff(composer.load("gpt2", {"d_model": 768})).equal
            True
            >>> gpt2.diff(composer.load("gpt2", {"n_layers": 6})).equal
            False
        """
        from composer.diff.difference import compare

        if not isinstance(other, Recipe):
            raise TypeError(f"diff compares with a recipe, not with {other!r}; load it with composer.load")
        return compare(self.program, other.program)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return the graph of the blocks as a networkx graph, with repeats folded.

        `composer.graph.networkx_view.view` describes the attributes of nodes and edges.

        Raises:
            RecipeError: The recipe has errors.

        Examples:
            >>> import composer
            >>> graph = composer.load("gpt2").to_networkx()
            >>> graph.nodes["layers.*.attn.body"]["type"]
            'attention'
        """
        from composer.graph.networkx_view import view

        return view(self.program)

    def export(self) -> str:
        """Return the source of one Python file that defines the model and depends only on torch.

        It begins with the number of its format, the version of Composer, and the digest of the recipe's text.

        Raises:
            RecipeError: The recipe has errors.

        Examples:
            >>> import composer
            >>> source = composer.load("gpt2").export()
            >>> "import composer" in source
            False
        """
        from composer.lower.exported_file import exported

        return exported(self._lowering.module, self.text)

    def verify(self) -> Verification:
        """Return whether the model does what it declares: its properties, tried at small sizes in float64.

        `check` reads declarations and trusts them; `verify` runs the model, and each block of your own alone.

        Raises:
            RecipeError: The recipe has errors.

        Examples:
            >>> import composer
            >>> verification = composer.load("gpt_mini").verify()
            >>> verification.ok
            True
        """
        from composer.verify.verification import verify

        return verify(self)

    def with_config(self, config: StrPath | Mapping[str, Any]) -> Recipe:
        """Return the recipe with the sizes of a published model.

        Args:
            config: The path to a `config.json` in the format of transformers or to its folder, or its contents.

        Raises:
            RecipeError: The configuration is for another type of model, or has a value that the recipe does not support.

        Examples:
            >>> import composer
            >>> config = {"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16, "n_positions": 1024}
            >>> config |= {"vocab_size": 50257, "resid_pdrop": 0.1}
            >>> composer.load("gpt2").with_config(config).summary().costs.parameters
            354823168
        """
        found = self.read_config(config_of(config))
        if found.wrong:
            raise RecipeError(found.wrong)
        return self._with(found.overrides)

    def read_config(self, config: Source, by_hand: Overrides = None) -> ConfigReading:
        """Return what the `config.json` of a published model sets in the recipe, and what of it is not supported.

        Args:
            config: The text of the file.
            by_hand: Further overrides, which win over what the file has for their paths.

        Raises:
            RecipeError: It is no `config.json`, or the recipe has no rules for its type of model.
        """
        from composer.weights import config as published

        if self.checkpoints is None:
            raise RecipeError(
                [Diagnostic("checkpoints-unknown-type", "this recipe maps to no published model", Span(self.source, 1, 1, 1, 1))]
            )
        further = read_overrides(by_hand)

        def applied(found: Sequence[Override]) -> published.Applied:
            changed = self._with((*found, *further))
            errors = [each for each in changed.check() if each.severity == "error"]
            state = changed._compiled
            params = None if state.program is None else state.program.params
            declared = () if state.parsed is None else state.parsed.params
            return published.Applied(params, published.params_of_words(declared, params or {}), errors)

        paths = {".".join(step.text for step in each.path) for each in further}
        return published.reading(self.checkpoints, config, applied, paths)

    def with_overrides(self, overrides: Overrides) -> Recipe:
        """Return the recipe with further overrides, applied after its own.

        Args:
            overrides: Values by path, or strings `PATH=VALUE`, as for `composer.load`.

        Raises:
            RecipeError: An override is malformed.

        Examples:
            >>> import composer
            >>> composer.load("gpt2").with_overrides({"n_layers": 6}).summary().costs.parameters
            81912576
        """
        return self._with(read_overrides(overrides))

    def _with(self, overrides: Iterable[Override]) -> Recipe:
        return replace(self, overrides=(*self.overrides, *overrides))

    def overridden(self, param: str) -> bool:
        """Return whether an override sets a param.

        Examples:
            >>> import composer
            >>> composer.load("gpt2", {"n_layers": 2}).overridden("n_layers")
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
    ) -> Model[Recipe]:
        """Return the model: a plain torch module with initial weights.

        Args:
            device: Device of the parameters; `"meta"` allocates no memory. By default, that of torch.
            dtype: Dtype of the parameters, such as `torch.float64`; by default, that of torch.
            seed: Seed of the initial weights; by default, they are drawn from torch's global generator.
            allow_large: Whether to build weights of more than 64 GiB in fp32.

        Raises:
            RecipeError: The recipe has errors, or its weights take more than 64 GiB in fp32 while `allow_large` is not set and
                the device is not `"meta"`.
            TypeError: `dtype` is no floating-point `torch.dtype`.

        Examples:
            >>> import composer, torch
            >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
            >>> model = composer.load("gpt2", tiny).compile(seed=0)
            >>> model(tokens=torch.tensor([[1, 2, 3]])).logits.shape
            torch.Size([1, 3, 61])
        """
        from composer.lower import compile

        return compile(self, device=device, dtype=dtype, seed=seed, allow_large=allow_large)

    def pretrained(
        self,
        weights: StrPath | Mapping[str, torch.Tensor] | Mapping[str, NDArray[Any]] | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        int8: bool = False,
        allow_nonfinite: bool = False,
    ) -> Model[Recipe]:
        """Return the model with published weights, in evaluation mode.

        Args:
            weights: A file or a folder of weights, or tensors or arrays by name; by default, those of the published folder that
                the recipe was loaded from.
            device: Device of the parameters; by default, that of torch.
            dtype: Dtype of the parameters, such as `torch.float64`; by default, that of torch.
            int8: Whether matrices are rounded to 8 bits with a scale for each row, one by one as they are read, so that the model
                takes about a quarter of its memory in fp32. Such a model only runs; everything else is in `dtype`.
            allow_nonfinite: Whether weights may have numbers that are infinite or no numbers, or that are infinite in `dtype`.

        Raises:
            RecipeError: The recipe has errors, there are no weights, they do not fit, or they have numbers that are not finite;
                no model is returned then.
            TypeError: `dtype` is no floating-point `torch.dtype`.
            Int8Error: Weights that are rounded have numbers that are not finite.

        Examples:
            >>> import composer
            >>> from composer.weights import save_published
            >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
            >>> recipe = composer.load("gpt2", tiny)
            >>> save_published(recipe.compile(seed=0), "model.safetensors")
            >>> model = recipe.pretrained("model.safetensors")
            >>> model.training
            False
        """
        from composer.lower import compile
        from composer.weights.transfer import fill_new

        source = self.published if weights is None else weights
        if source is None:
            hint = "name them: recipe.pretrained(PATH); `composer.load` of a published folder knows its own"
            message = "this recipe was not loaded from a folder with weights"
            raise RecipeError([Diagnostic("missing-file", message, Span(self.source, 1, 1, 1, 1), hint=hint)])
        model = compile(self, device=device, dtype=dtype, seed=0, allow_large=True, int8=int8)
        fill_new(model, source, allow_nonfinite=allow_nonfinite)
        return model.eval()
