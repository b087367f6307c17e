"""The parser of recipes: the names of keys, blocks, fields and ports are checked, and expressions parsed."""

from __future__ import annotations

from blocks.core import Library
from composer.language.recipe.ast import GraphBody, ParsedRecipe
from composer.language.recipe.base_parser import LETTERS, NAME, BaseParser, first_key, names_under
from composer.language.recipe.declarations import adapters, init, inputs, params
from composer.language.recipe.definitions import DefinitionParser
from composer.language.recipe.graphs import GraphParser
from composer.language.recipe.keys import KEYS, LANGUAGE, keys_of
from composer.language.recipe.losses import losses
from composer.language.recipe.node_options import named_references
from composer.language.recipe.recursion_check import check_recursion
from composer.language.suggestions import suggest
from composer.language.tasks import TASKS
from composer.language.unknown_names import quoted
from composer.language.yaml.nodes import Document, YamlList, YamlMapping, YamlNode, YamlScalar

MISSING = {
    "recipe": ("a recipe begins with its name", "write `recipe: my_model` as the first line"),
    "graph": ("a recipe needs a graph", "write `graph:` with the model's nodes below it"),
    "inputs": ("a recipe needs inputs", 'such as `inputs: {tokens: "int[batch, time]"}`'),
}
"""The message and the hint for a missing key."""


def parse(document: Document, library: Library) -> ParsedRecipe | None:
    """Return the recipe that a document holds, with what is wrong in `diagnostics`; None where the document holds
    none, and says why.
    """
    root = document.root
    if root is None:
        return None
    reader = BaseParser(list(document.diagnostics))
    reader.keys(root, keys_of("recipe"), "a recipe", also=keys_of("composition"))
    definer = DefinitionParser(reader, document.ambiguous_blocks)
    definitions, library = definer.under(root.get("blocks"), library, names_under(root.get("params")))
    reader.diagnostics.extend(endless := check_recursion(definitions))
    holds_blocks = root.entry("blocks") if not {*MISSING} & {entry.key.text for entry in root} else None
    if holds_blocks is not None:
        message = "this is a file of blocks and not a model, since it has no graph"
        hint = "name the file under `uses` of a recipe, with which its blocks are checked"
        reader.error("missing-key", holds_blocks.key.span, message, hint=hint)
    for key, (message, hint) in MISSING.items() if holds_blocks is None else ():
        if key not in root and not _misspelled(root, key):
            reader.error("missing-key", first_key(root), message, hint=hint)
    _language(reader, root.get("language"))
    name, task = _name(reader, root.get("recipe")), _task(reader, root.get("task"))
    graphs, graph, checkpoints = (
        GraphParser(reader, library, document.ambiguous_blocks, names_under(root.get("params"))),
        root.get("graph"),
        root.get("checkpoints"),
    )
    reader.entries(checkpoints, "checkpoints")  # each rule is read where it is used
    misformed = any(isinstance(root.get(key), YamlScalar | YamlList) for key in ("params", "inputs", "graph", "blocks"))
    return ParsedRecipe(
        name=name.text if name else "",
        doc=reader.text(root.get("doc")),
        paper=reader.text(root.get("paper")),
        task=task.text if task else "",
        task_span=task.span if task else None,
        params=tuple(params(reader, root.get("params"), library)),
        inputs=tuple(inputs(reader, root.get("inputs"))),
        body=graphs.body(graph, root.entry("outputs")) if graph is not None else GraphBody((), (), root.span),
        positions=tuple(named_references(reader, root.entry("positions"))),
        losses=tuple(losses(graphs, root.get("losses"), task.text if task else "")),
        init=tuple(init(reader, root.get("init"))),
        adapters=tuple(adapters(reader, root.get("adapters"))),
        checkpoints=checkpoints if isinstance(checkpoints, YamlMapping) else None,
        root=root,
        name_scalar=name or YamlScalar("", root.span),
        library=library,
        definitions={each.part: each for each in definitions},
        ambiguous_blocks=document.ambiguous_blocks,
        readable=not (endless or definer.too_many or misformed),
        diagnostics=tuple(reader.diagnostics),
    )


def _name(reader: BaseParser, node: YamlNode | None) -> YamlScalar | None:
    name = reader.scalar(node, "the recipe's name is one word")
    if name is not None and not NAME.fullmatch(name.text):
        reader.error("bad-name", name.span, f"{quoted(name.text)} cannot be the name of a recipe", hint=LETTERS)
    return name


def _language(reader: BaseParser, node: YamlNode | None) -> None:
    version = reader.scalar(node, "the language's version must be a number")
    if version is None or version.text == str(LANGUAGE):
        return
    newer = version.text.isdigit() and int(version.text[:9]) > LANGUAGE
    known = "newer than this version of Composer supports" if newer else "not a version of the language"
    hint = f"this version of Composer supports language {LANGUAGE}"
    reader.error("language-version", version.span, f"language {version.text[:20]} is {known}", hint=hint)


def _task(reader: BaseParser, node: YamlNode | None) -> YamlScalar | None:
    task = reader.scalar(node, "a task is one word")
    if task is None or task.text in TASKS:
        return task
    reader.unknown("unknown-task", task.span, "task", task.text, TASKS)
    return None


def _misspelled(root: YamlMapping, key: str) -> bool:
    """Return whether a missing key is likely meant by a misspelled one, which has been reported."""
    return any(suggest(entry.key.text, keys_of("recipe"))[:1] == [key] for entry in root if entry.key.text not in KEYS["recipe"])
