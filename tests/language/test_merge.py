"""One recipe laid over another, and `--set`."""

import pytest

from blocks.core import standard
from composer.diagnostics import Source, full
from composer.language.composition.apply_overrides import with_overrides
from composer.language.composition.merge import merge
from composer.language.composition.override import read_override
from composer.language.recipe.writer import YamlData, data_of, write
from composer.language.yaml.nodes import Document, YamlMapping
from composer.language.yaml.reader import read

BASE = """recipe: small
params:
  layers: 2
  wide: true
  curve: gelu
  rate: {default: 0.1, type: float, min: 0}
  twice: 2 * layers
  own_norm: {type: block, default: {type: rmsnorm, eps: 1e-6}}
inputs:
  tokens: int[batch, time]
graph:
  embed: {type: embedding, vocab: 50, dim: 8}
  stack:
    repeat: layers
    graph:
      attn: {type: residual, norm: layernorm, body: {type: attention, heads: 2, mask: causal, bias: true}}
      ffn: {type: residual, norm: own_norm, body: {type: ffn, activation: curve, bias: wide, dropout: rate, hidden: twice}}
  norm: layernorm
  mix: {type: add, in: [norm, embed]}
  head: {type: linear, out: 50, tie: {weight: embed.weight}}
init:
  "*": {normal: 0.02}
  "*.weight": {normal: 0.1}
"""


def base() -> YamlMapping:
    """Return the recipe above, read."""
    root = read(Source("base.yaml", BASE)).root
    assert root is not None
    return root


def merged(change: str) -> YamlData:
    """Return what comes of a change written as YAML."""
    root = read(Source("change.yaml", change)).root
    assert root is not None
    together, wrong = merge(base(), root, standard())
    assert not wrong
    return data_of(together)


def at(data: YamlData, path: str) -> YamlData:
    """Return the value at a path of keys."""
    for step in path.split("/"):
        assert isinstance(data, dict)
        data = data[step]
    return data


def with_set(*arguments: str) -> Document:
    """Return the recipe with `--set` arguments."""
    return with_overrides(Document(Source("base.yaml", BASE), base(), ()), map(read_override, arguments), standard())


def after(*arguments: str) -> YamlData:
    """Return its data, where all of the arguments are right."""
    document = with_set(*arguments)
    assert not [each for each in document.diagnostics if each.severity == "error"], [*map(full, document.diagnostics)]
    assert document.root is not None
    return data_of(document.root)


def mistake(*arguments: str) -> tuple[str, int, str]:
    """Return the code, the column and the message of the one mistake in the arguments."""
    (found,) = with_set(*arguments).diagnostics
    assert found.span.source.name == "--set"
    return found.code, found.span.column, found.message


# -- merge


def test_shorthand_of_a_block_keeps_its_type() -> None:
    """`norm: layernorm` with `{eps: …}` is a layernorm with that eps."""
    assert at(merged("graph: {norm: {eps: 1e-3}}"), "graph/norm") == {"type": "layernorm", "eps": "1e-3"}


def test_shorthand_in_a_slot_keeps_its_type() -> None:
    """The same where the block fills a slot of a node in a repeat."""
    change = "graph: {stack: {graph: {attn: {norm: {bias: false}}}}}"
    assert at(merged(change), "graph/stack/graph/attn/norm") == {"type": "layernorm", "bias": "false"}


def test_other_type_replaces_the_node() -> None:
    """Nothing of the old node is left, its edges included."""
    assert at(merged("graph: {mix: {type: identity}}"), "graph/mix") == {"type": "identity"}


def test_same_type_changes_what_is_written() -> None:
    """The other fields stay."""
    change = "graph: {stack: {graph: {attn: {body: {type: attention, heads: 4}}}}}"
    changed = at(merged(change), "graph/stack/graph/attn/body")
    assert changed == {"type": "attention", "heads": "4", "mask": "causal", "bias": "true"}


def test_type_alone_in_short_changes_nothing() -> None:
    """`head: linear` over a linear head is the shorthand of `{type: linear}`, and merges like it."""
    assert merged("graph: {head: linear}") == data_of(base())


def test_scalar_and_list_replace() -> None:
    """There is nothing in them to merge."""
    assert at(merged("graph: {mix: {in: [embed, norm]}}"), "graph/mix/in") == ["embed", "norm"]


def test_null_deletes() -> None:
    """The key is gone."""
    assert at(merged("graph: {head: {tie: null}}"), "graph/head") == {"type": "linear", "out": "50"}


def test_null_of_what_is_not_there_is_reported() -> None:
    """With the nearest name that is."""
    change = read(Source("change.yaml", "graph: {haed: null}")).root
    assert change is not None
    _, (wrong,) = merge(base(), change, standard())
    assert (wrong.code, wrong.span.column) == ("nothing-to-delete", 9)
    assert wrong.hint == "did you mean head?"


def test_new_key_goes_after_the_one_that_stands_before_it() -> None:
    """`embed: {}` is an anchor that changes nothing."""
    changed = at(merged("graph: {embed: {}, positions: sinusoidal, norm: {eps: 1}, after: identity}"), "graph")
    assert isinstance(changed, dict)
    assert list(changed) == ["embed", "positions", "stack", "norm", "after", "mix", "head"]


def test_new_key_without_another_before_it_goes_last() -> None:
    """There is nothing to go after."""
    assert list(at(merged("init: {'*.bias': {constant: 0}}"), "init")) == ["*", "*.weight", "*.bias"]  # type: ignore[arg-type]


def test_edge_of_the_first_port_stays_beside_a_new_one() -> None:
    """`in: embed` is short for the first port of the block that reads it."""
    text = "recipe: r\ngraph:\n  cross: {type: attention, heads: 2, in: x}\n  tail: {graph: {a: identity}, in: x}"
    root = read(Source("base.yaml", text)).root
    change = read(Source("c.yaml", "graph: {cross: {in: {memory: m}}, tail: {in: {more: m}}}")).root
    assert root is not None and change is not None
    together = data_of(merge(root, change, standard())[0])
    assert at(together, "graph/cross/in") == {"x": "x", "memory": "m"}
    assert at(together, "graph/tail/in") == {"input": "x", "more": "m"}


def test_one_flag_of_several_leaves_the_others() -> None:
    """`bias: true` is short for all projections."""
    change = "graph: {stack: {graph: {attn: {body: {bias: {q: false}}}}}}"
    flags = at(merged(change), "graph/stack/graph/attn/body/bias")
    assert flags == {"q": "false", "k": "true", "v": "true", "out": "true", "gate": "true"}


def test_spans_of_both_files_are_kept() -> None:
    """What was not changed is still located in the base, what was changed in the change."""
    change = read(Source("change.yaml", "graph: {norm: {eps: 1e-3}}")).root
    assert change is not None
    graph = merge(base(), change, standard())[0].get("graph")
    assert isinstance(graph, YamlMapping)
    norm = graph.get("norm")
    assert isinstance(norm, YamlMapping)
    places = [(entry.value.span.source.name, entry.value.span.line) for entry in norm]
    assert places == [("base.yaml", 18), ("change.yaml", 1)]


# -- --set


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("layers=6", "6"),
        ("twice=3 * layers", "3 * layers"),
        ("wide=false", "false"),
        ("curve=silu", "silu"),
        ("layers=twice - 2", "twice - 2"),
        ("curve=layers", {"default": "layers", "type": "str"}),
    ],
)
def test_param_by_its_name(change: str, expected: YamlData) -> None:
    """A short param stays short, unless its new default alone would not say what its type was."""
    assert at(after(change), f"params/{change.partition('=')[0]}") == expected


def test_long_param_keeps_its_range() -> None:
    """Only the default changes."""
    assert at(after("rate=0.2"), "params/rate") == {"default": "0.2", "type": "float", "min": "0"}


def test_param_that_holds_a_block_merges_it() -> None:
    """A block as a value replaces or merges by its type, and a path may lead into it."""
    assert at(after("own_norm={type: layernorm}"), "params/own_norm/default") == {"type": "layernorm"}
    assert at(after("own_norm.eps=1e-3"), "params/own_norm/default") == {"type": "rmsnorm", "eps": "1e-3"}


@pytest.mark.parametrize("path", ["graph.stack.graph.attn.body.mask", "stack.attn.body.mask", "graph.stack.attn.body.mask"])
def test_path_may_leave_out_graph(path: str) -> None:
    """The long way and the short one lead to the same place."""
    assert at(after(f"{path}=full"), "graph/stack/graph/attn/body/mask") == "full"


def test_unwritten_slot_takes_the_type_of_its_default() -> None:
    """`activation` of a gated_ffn is silu where nothing is written; a path into it says so."""
    text = "recipe: r\ngraph: {ffn: {type: gated_ffn, hidden: 4}}"
    root = read(Source("base.yaml", text)).root
    document = with_overrides(
        Document(Source("b", text), root, ()), map(read_override, ["ffn.activation.trainable=false"]), standard()
    )
    assert document.root is not None
    assert at(data_of(document.root), "graph/ffn/activation") == {"type": "silu", "trainable": "false"}


def test_pattern_of_init_may_hold_dots() -> None:
    """All of the path after `init` is one name."""
    assert at(after("init.*.weight={normal: 0.5}"), "init/*.weight") == {"normal": "0.5"}


def test_several_apply_in_order() -> None:
    """A later one sees what an earlier one made."""
    changed = at(after("norm=rmsnorm", "norm.eps=1e-3"), "graph/norm")
    assert changed == {"type": "rmsnorm", "eps": "1e-3"}


def test_param_that_nothing_uses_any_more_goes_with_a_warning() -> None:
    """`wide` was used by the one `bias` alone."""
    document = with_set("stack.ffn.body.bias=false")
    (doubt,) = document.diagnostics
    assert (doubt.severity, doubt.message, doubt.span.line) == ("warning", "nothing uses `wide` anymore", 4)
    assert document.root is not None
    assert "wide" not in at(data_of(document.root), "params")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("argument", "code", "column"),
    [
        ("layer=6", "unknown-path", 1),
        ("params.layer=6", "unknown-param", 8),
        ("layers=many", "not-a-number", 8),
        ("layers=true", "not-a-number", 8),
        ("wide=3", "not-a-boolean", 6),
        ("curve=3", "not-a-string", 7),
        ("stack.attn.boddy.mask=full", "unknown-field", 12),
        ("stack.attn.body.msk=full", "unknown-field", 17),
        ("stack.atn.body.mask=full", "unknown-path", 7),
        ("graph.stack.graph.atn.body.mask=full", "unknown-node", 19),
        ("layers", "assignment", 1),
        ("layers=", "empty-value", 7),
        ("stack.attn.body.mask={a: [}", "unclosed-bracket", 27),
        ("head.tie=&x", "anchor", 10),
        ("layers=2 +", "expression-syntax", 10),
    ],
)
def test_mistake_is_located_in_the_argument(argument: str, code: str, column: int) -> None:
    """At the component of the path, or in the value."""
    assert mistake(argument)[:2] == (code, column)


def test_name_of_a_param_and_a_node_is_ambiguous() -> None:
    """It must be said which is meant; a longer path may tell."""
    text = BASE.replace("  norm: layernorm", "  curve: layernorm").replace("[norm", "[curve")
    document = Document(Source("base.yaml", text), read(Source("base.yaml", text)).root, ())
    (wrong,) = with_overrides(document, map(read_override, ["curve=relu"]), standard()).diagnostics
    assert (wrong.code, wrong.hint) == ("ambiguous", "write params.curve or graph.curve")
    changed = with_overrides(document, map(read_override, ["curve.eps=1e-3"]), standard())
    assert changed.root is not None
    assert at(data_of(changed.root), "graph/curve") == {"type": "layernorm", "eps": "1e-3"}


def test_value_is_quoted_with_its_place() -> None:
    """The whole argument is the source, so the caret stands under the value."""
    (wrong,) = with_set("layers=many").diagnostics
    assert full(wrong).splitlines()[2:4] == ["1 |layers=many", "  |       ^^^^"]


# -- write


@pytest.mark.parametrize(
    "value",
    [
        *("word", "a, b", "[x", "{", "- x", "-1", "#", "a # b", "a: b", "a:", "'", '"', "*", "&a", "!t", "%", "@", "| x", "> y"),
        *("? z", "two\nlines", "two\nlines\n", " led", "trailed ", "int[batch, time]?", "layers(:)", "layers(2:5).x", "~"),
        *("null", "a  b", "\ttab", "=", "<<", "é — ×"),
    ],
)
@pytest.mark.parametrize("place", ["block", "flow", "key"])
def test_any_text_is_read_back_as_it_was_written(value: str, place: str) -> None:
    """Whatever YAML makes of its signs elsewhere."""
    if place == "key" and ("\n" in value or value == "<<"):
        pytest.skip("no key of a recipe has several lines, and `<<` is refused")
    data: dict[str, YamlData] = {
        "block": {"a": value},
        "flow": {"a": {"b": [value, "c"], "d": {"e": value}}},
        "key": {"a": {value: "x"}},
    }[place]  # type: ignore[assignment]
    document = read(Source("text", write(data)))
    assert document.root is not None
    assert (data_of(document.root), document.diagnostics) == (data, ())


def test_recipe_is_read_back_as_it_was_written() -> None:
    """A whole one, nested and in flow style."""
    data = data_of(base())
    assert isinstance(data, dict)
    again = read(Source("text", write(data))).root
    assert again is not None
    assert data_of(again) == data


def test_a_new_node_takes_the_place_of_the_one_that_is_deleted_there() -> None:
    """So that the last node stays the last, which is what the model returns."""
    change = "graph: {embed: null, table: {type: linear}, more: identity, stack: {repeat: 1}, head: null, out: identity}"
    changed = at(merged(change), "graph")
    assert isinstance(changed, dict)
    assert list(changed) == ["table", "more", "stack", "norm", "mix", "out"]


def test_a_node_that_a_file_changes_stands_where_it_is_changed() -> None:
    """What is said of it quotes the change, and not a line of the base that no longer holds."""
    change = read(Source("change.yaml", "graph:\n  norm: {type: linear}\n  mix: {in: head}\n")).root
    assert change is not None
    graph = merge(base(), change, standard(), from_file=True)[0].get("graph")
    assert isinstance(graph, YamlMapping)
    files = {entry.key.text: entry.key.span.source.name for entry in graph}
    assert [name for name, file in files.items() if file == "change.yaml"] == ["norm", "mix"]


NAMED = """recipe: named
params: {size: 4}
inputs: {tokens: "int[batch, time]", at: "int[batch, time]"}
graph:
  positions: {type: learned_positions, max_length: size}
positions: {time: at}
"""


@pytest.mark.parametrize(
    ("argument", "place"),
    [
        ("positions.max_length=8", "graph/positions/max_length"),
        ("graph.positions.max_length=8", "graph/positions/max_length"),
        ("positions.time=8", "positions/time"),
    ],
)
def test_a_node_with_the_name_of_a_key_can_be_set(argument: str, place: str) -> None:
    """The key is meant where the path leads on to a name below it."""
    source = Source("named.yaml", NAMED)
    root = with_overrides(read(source), [read_override(argument)], standard()).root
    assert root is not None
    assert at(data_of(root), place) == "8"
