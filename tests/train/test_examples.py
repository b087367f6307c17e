"""Rows of tables become batches: against values worked out by hand, and a loop written out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import composer
from composer.train import (
    ByteTokenizer,
    Examples,
    Interrupted,
    MarkedTokenizer,
    Table,
    TrainingError,
    TrainSettings,
    characters_of,
    examples_of,
    fitted,
    open_run,
    read_table,
    resume,
    train,
    validate,
)
from composer.train.data.objectives import END, START
from composer.train.data.order import at_batch
from composer.train.run.reader import read_run
from tests.train.small import Quiet

CLASSIFIER = """
recipe: classifier
language: 1
task: sequence_classification
params: {vocab: 256, n_classes: 5, dim: 16}
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: vocab, dim: dim}
  pool: {type: pool, mode: mean, in: {x: embed, valid: valid}}
  head: {type: linear, out: n_classes}
outputs: {logits: head}
"""
NUMBERS = """
recipe: numbers
language: 1
params: {width: 3, classes: 9}
inputs: {x: "float[batch, width]", kind: "int[batch]?", value: "float[batch]?", flag: "bool[batch]?"}
graph:
  up: {type: linear, out: 8, in: x}
  act: relu
  head: {type: linear, out: classes}
  one: {type: linear, out: 1, in: act}
  flat: {type: select, axis: -1, index: 0}
outputs: {scores: head}
losses:
  kind: {type: cross_entropy, in: head, target: kind}
  value: {type: mse, in: flat, target: value}
"""
WORDS = ["good film", "bad", "a very good book", "bad, bad song", "fine"] * 4
LABELS = ["pos", "neg", "pos", "neg", "pos"] * 4


def table_of(columns) -> Table:
    """Return a table of columns, whose rows are lines of a file."""
    count = len(next(iter(columns.values())))
    return Table((Path("t.csv"),), columns, "0" * 64, [("t.csv", row + 2) for row in range(count)])


def recipe_of(text: str, **params) -> composer.Recipe:
    """Return a recipe with overrides."""
    return composer.load(text, params)


def test_a_text_and_its_class_become_a_padded_batch():
    """Every tenth row is held out; classes are numbered in the order of the alphabet."""
    data = examples_of(table_of({"tokens": WORDS, "label": LABELS}), recipe_of(CLASSIFIER).program, ByteTokenizer(), seq_len=99)
    assert (data.train.tolist(), data.validation.tolist()) == ([*range(9), *range(10, 19)], [9, 19])
    assert data.labels == {"label": ("neg", "pos")}
    batch = data.batch(np.array([1, 0, 4]))
    assert batch["tokens"].tolist() == [[*word.encode(), *[0] * (9 - len(word))] for word in ("bad", "good film", "fine")]
    assert batch["valid"].sum(1).tolist() == [3, 9, 4] and batch["valid"].dtype == torch.bool
    assert batch["label"].tolist() == [0, 1, 1]


def test_long_texts_are_cut_where_they_are_classified():
    """And counted."""
    data = examples_of(table_of({"tokens": WORDS, "label": LABELS}), recipe_of(CLASSIFIER).program, ByteTokenizer(), seq_len=4)
    assert (data.cut, data.left_out, data.batch(np.array([0]))["tokens"].tolist()) == (12, 0, [[*b"good"]])


def test_the_loss_is_asked_for_in_the_answer_alone():
    """The first token of the answer follows the last of the prompt, and an end token the answer."""
    tokenizer = MarkedTokenizer(ByteTokenizer(), (END,))
    model = recipe_of("gpt_mini", vocab=257, d_model=16, n_layers=1)
    table = table_of({"q": ["1+2=", "9+8="], "answer": ["3", "17"]})
    data = examples_of(table, model.program, tokenizer, columns=["prompt=q"], seq_len=16)
    batch = data.batch(np.array([0, 1]))
    assert batch["tokens"].tolist() == [[*b"1+2=3", 0], [*b"9+8=17"]]
    assert batch["targets"].tolist() == [[-100, -100, -100, *b"3", 256, -100], [-100, -100, -100, *b"17", 256]]
    assert batch["valid"].tolist() == [[True] * 5 + [False], [True] * 6]
    short = examples_of(table, model.program, tokenizer, columns=["prompt=q"], seq_len=5)
    assert (short.left_out, len(short.train)) == (1, 1)


def test_sources_and_targets_are_as_in_a_file_of_pairs():
    """The same batches as the objective of translation makes."""
    tokenizer = MarkedTokenizer(ByteTokenizer(), (START, END))
    model = recipe_of("transformer", vocab=258, d_model=16, n_layers=1, n_heads=2)
    pairs = [("ab", "x"), ("c", "yz")]
    columns = {"source": [source for source, _ in pairs], "target": [target for _, target in pairs]}
    found = examples_of(table_of(columns), model.program, tokenizer, seq_len=9).batch(np.array([0, 1]))
    objective = composer.train.objective_of("seq2seq_lm", tokenizer)
    text = objective.tokenize("".join(f"{source}\t{target}\n" for source, target in pairs * 10), path="p.tsv")
    streams = objective.pairs(text.train)[:2]
    expected = objective._batch(streams)
    for name in ("source", "source_valid", "target", "targets"):
        own = found[name]
        same = own == expected[name]
        # what stands at padding is never read
        assert bool((same | (expected["targets"] == -100 if name == "target" else ~expected["source_valid"])).all()) or same.all()
    assert found["targets"].tolist() == expected["targets"].tolist()


def test_each_word_has_its_tag_at_its_first_token():
    """Words are lists or texts with spaces."""
    text = CLASSIFIER.replace("sequence_classification", "token_classification").replace("{x: embed, valid: valid}", "{x: embed}")
    text = text.replace("  pool: {type: pool, mode: mean, in: {x: embed}}\n", "")
    recipe = recipe_of(text)
    table = table_of({"tokens": [["ab", "c"], "d"], "tags": ["N V", ["N"]]})
    data = examples_of(table, recipe.program, ByteTokenizer(), columns=["labels=tags"], seq_len=9)
    batch = data.batch(np.array([0, 1]))
    assert batch["tokens"].tolist() == [[*b"ab c"], [*b"d", 0, 0, 0]]
    assert batch["labels"].tolist() == [[0, -100, 1, -100], [0, -100, -100, -100]]
    assert data.labels == {"labels": ("N", "V")}
    with pytest.raises(TrainingError, match="line 3: `tokens` has 1 word, and `tags` 2 tags"):
        wrong = table_of({"tokens": [["ab", "c"], "d"], "tags": ["N V", "N N"]})
        examples_of(wrong, recipe.program, ByteTokenizer(), columns=["labels=tags"], seq_len=9)


def test_numbers_come_from_one_column_or_several():
    """Texts and lists of numbers; an entry without a column is left out where the model takes it so."""
    columns = {"a": ["1", " 2.5"], "b": ["-3e2", "4"], "both": [[1, 2], [3, 4]], "kind": ["10", "9"], "flag": ["True", "0"]}
    program = recipe_of(NUMBERS, width=2).program
    for given in (["x=a", "x=b"], ["x=[ab]"]):
        data = examples_of(table_of(columns), program, ByteTokenizer(), columns=given, seq_len=1)
        batch = data.batch(np.array([0, 1]))
        assert batch["x"].tolist() == [[1, -300], [2.5, 4]] and batch["x"].dtype == torch.float32
    assert examples_of(table_of(columns), program, ByteTokenizer(), columns=["x=both"], seq_len=1).batch(np.array([1]))[
        "x"
    ].tolist() == [[3, 4]]
    assert data.labels == {"kind": ("9", "10")} and batch["kind"].tolist() == [1, 0]
    assert batch["flag"].tolist() == [True, False] and "value" not in batch


def test_pixels_of_bytes_are_centered():
    """Gray images need no axis of channels."""
    pixels = np.array([[[0, 255], [51, 204]]] * 12, dtype=np.uint8)
    sizes = {"patch": 1, "d_model": 8, "n_layers": 1, "n_heads": 1, "hidden": 8}
    table = table_of({"image": pixels, "label": np.arange(12, dtype=np.uint8) % 3})
    recipe = fitted(composer.load("vit", sizes), table)
    params = recipe.program.untyped.params
    assert [params[name] for name in ("size", "n_channels", "n_classes")] == [2, 1, 3]
    batch = examples_of(table, recipe.program, ByteTokenizer(), seq_len=1).batch(np.array([4]))
    torch.testing.assert_close(batch["image"], torch.tensor([[[[-1.0, 1.0], [-0.6, 0.6]]]]))
    assert batch["label"].tolist() == [1]


@pytest.mark.parametrize("mode", ["L", "RGB", "P"])
def test_image_files_are_scaled_and_cut_to_the_middle(tmp_path, mode):
    """An image twice as wide as high keeps its middle, in one channel or three."""
    image = pytest.importorskip("PIL.Image")
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        for number in range(6):
            picture = image.new("RGB", (40, 20), "black")
            picture.paste((255, 255, 255), (10, 0, 20, 20) if name == "left" else (20, 0, 30, 20))
            picture.convert(mode).save(tmp_path / name / f"{number}.png")
    sizes = {
        "patch": 5,
        "d_model": 8,
        "n_layers": 1,
        "n_heads": 1,
        "hidden": 8,
        "size": 10,
        "n_channels": 1 if mode == "L" else 3,
    }
    recipe = fitted(composer.load("vit", sizes), read_table([tmp_path]))
    data = examples_of(read_table([tmp_path]), recipe.program, ByteTokenizer(), seq_len=1)
    assert (data.labels, recipe.program.untyped.params["n_classes"]) == ({"label": ("left", "right")}, 2)
    left, right = (data.batch(np.array([row]))["image"][0] for row in (0, 7))
    assert left.shape == (sizes["n_channels"], 10, 10)
    assert left[:, :, :4].min() > 0.8 and left[:, :, 6:].max() < -0.8
    assert right[:, :, :4].max() < -0.8 and right[:, :, 6:].min() > 0.8
    listed = table_of({"image": [f"left/{number}.png" for number in range(12) if number < 6] * 2, "label": ["a", "b"] * 6})
    listed = Table((tmp_path / "t.csv",), listed.columns, listed.sha256, [(str(tmp_path / "t.csv"), row) for row in range(12)])
    found = examples_of(listed, recipe.program, ByteTokenizer(), seq_len=1).batch(np.array([0]))
    assert torch.equal(found["image"][0], left)
    assert left.is_contiguous()  # channels last in memory crash torch's gradients of narrow convolutions
    (tmp_path / "left" / "0.png").write_bytes(b"no image")
    with pytest.raises(TrainingError, match=r"0\.png cannot be read as an image"):
        examples_of(listed, recipe.program, ByteTokenizer(), seq_len=1)


@pytest.mark.parametrize(
    ("sides", "shape"), [("height, width", (6, 14)), ("8, width", (8, 14)), ("side, side", (6, 6))], ids=["both", "one", "square"]
)
def test_image_files_keep_their_size_where_the_recipe_leaves_it_open(tmp_path, sides, shape):
    """If all have the same one; else they are scaled to the usual size of images."""
    image = pytest.importorskip("PIL.Image")
    names = [f"{number}.png" for number in range(4)]
    for number, name in enumerate(names):
        image.new("RGB", (14, 6), (number, 0, 0)).save(tmp_path / name)
    recipe = composer.load(
        f"""recipe: averaged
task: image_classification
inputs: {{image: "float[batch, 3, {sides}]"}}
graph:
  conv: {{type: conv2d, out: 2, kernel_size: 3, padding: 1}}
  flat: {{type: rearrange, pattern: b c y x -> b (y x) c}}
  mean: {{type: pool, mode: mean}}
outputs: {{logits: mean}}
"""
    )
    table = table_of({"image": [tmp_path / name for name in names], "label": ["a", "b"] * 2})
    batch = examples_of(table, recipe.program, ByteTokenizer(), seq_len=1).batch(np.arange(4))
    assert batch["image"].shape == (4, 3, *shape)
    image.new("RGB", (14, 7)).save(tmp_path / names[-1])
    batch = examples_of(table, recipe.program, ByteTokenizer(), seq_len=1).batch(np.arange(4))
    assert batch["image"].shape == (4, 3, 8 if sides.startswith("8") else 224, 224)


@pytest.mark.parametrize(
    ("text", "columns", "given", "message"),
    [
        (
            CLASSIFIER,
            {"tokens": ["a"]},
            [],
            "needs the target `label`, and t.csv has no column of that name; its columns are tokens",
        ),
        (CLASSIFIER, {"text": ["a"], "label": ["b"]}, [], "needs `tokens`, int[batch, time], and t.csv has no column"),
        (CLASSIFIER, {"tokens": ["a"], "label": ["b"]}, ["tokns=a"], "no input `tokns`"),
        (CLASSIFIER, {"tokens": ["a"], "label": ["b"]}, ["label=lable"], "t.csv has no column `lable`"),
        (CLASSIFIER, {"tokens": ["a"], "label": ["b"]}, ["label"], "`label` is not NAME=COLUMN"),
        (CLASSIFIER, {"tokens": ["a", ""], "label": ["b", "c"]}, [], "t.csv, line 3: the column `tokens` is empty"),
        (CLASSIFIER, {"tokens": ["a", 3], "label": ["b", "c"]}, [], "line 3: the column `tokens` is no text: 3"),
        (CLASSIFIER, {"tokens": ["a", "b"], "label": ["b", ""]}, [], "line 3: the column `label` has no class: ''"),
        (CLASSIFIER, {"tokens": ["a", "b"], "label": ["b", None]}, [], "line 3: the column `label` has no class: None"),
        (
            NUMBERS,
            {"x": ["1"], "kind": ["1"]},
            [],
            "the model reads `x`, float[batch, 3], and 1 column of t.csv (x) give [batch, 1]",
        ),
        (NUMBERS, {"x": [[1, 2, 3], [1, 2]], "kind": [0, 1]}, [], "the rows of `x` in t.csv have unequal shapes: (2,), (3,)"),
        (NUMBERS, {"x": [[1, 2, 3], [1, 2, "z"]], "kind": [0, 1]}, [], "line 3: the column `x` is no number: 'z'"),
        (NUMBERS, {"x": [[1, 2, 3], [1, 2, float("nan")]], "kind": [0, 1]}, [], "line 3: the column `x` is no number: nan"),
        (NUMBERS, {"x": [[1, 2, 3], ""], "kind": [0, 1]}, [], "line 3: the column `x` is empty"),
        (
            NUMBERS,
            {"x": [[1, 2, 3], [1, 1e39, 2]], "kind": [0, 1]},
            [],
            "line 3: the column `x` has a number that is too large: 1e+39",
        ),
        (
            NUMBERS.replace("float[batch, width]", "int[batch, width]")
            .replace("in: x}", "in: real}")
            .replace("graph:", "graph:\n  real: {compute: float32(x)}", 1),
            {"x": [[1, 2, 3], [1, 10**30, 2]], "kind": [0, 1]},
            [],
            "line 3: the column `x` has a number that is too large: 1000",
        ),
        (
            NUMBERS,
            {"x": np.array([[1, 2, 3]] * 1030 + [[1, np.nan, 3]]), "kind": np.zeros(1031, dtype=int)},
            [],
            "line 1032: the column `x` has no finite number: nan",
        ),
        (
            NUMBERS,
            {"x": np.array([[1, 2, 3], [1, 2, -np.inf]], dtype=np.float16), "kind": [0, 1]},
            [],
            "line 3: the column `x` has no finite number: -inf",
        ),
        (
            NUMBERS,
            {"x": np.array([[1, 2, 3], [1, 2, 1e39]]), "kind": [0, 1]},
            [],
            "line 3: the column `x` has a number that is too large: 1e+39",
        ),
        (
            NUMBERS,
            {"x": [[1, 2, 3]]},
            [],
            "no loss can be computed: t.csv has no column for `kind` or `value`; its columns are x",
        ),
        (NUMBERS, {"x": [[1, 2, 3]], "kind": [1], "flag": ["maybe"]}, [], "line 2: the column `flag` is no truth value: 'maybe'"),
    ],
)
def test_what_a_table_lacks_is_told(text, columns, given, message):
    """With the line and the column."""
    with pytest.raises(TrainingError) as refused:
        examples_of(table_of(columns), recipe_of(text).program, ByteTokenizer(), columns=given, seq_len=9)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("columns", "hint"),
    [
        ({"pixels": np.zeros((2, 4, 4)), "cat red": ["a", "b"]}, "name it: --column 'tokens=cat red'"),
        ({"pixels": np.zeros((2, 4, 4))}, "none of them has texts"),
    ],
)
def test_a_column_is_offered_that_may_be_what_is_asked(columns, hint):
    """As a shell takes it, and no pixels for a text."""
    with pytest.raises(TrainingError) as refused:
        examples_of(table_of(columns), recipe_of(CLASSIFIER).program, ByteTokenizer(), seq_len=9)
    assert refused.value.hint == hint


def test_a_recipe_of_too_few_classes_is_refused_where_no_param_says_how_many():
    """A number that is written in the graph stays as it is."""
    recipe = recipe_of(CLASSIFIER.replace("out: n_classes", "out: 1").replace("n_classes: 5, ", ""))
    with pytest.raises(TrainingError, match=r"`label` of t\.csv has 2 classes \(neg, pos\), and the model tells 1"):
        fitted(recipe, table_of({"tokens": WORDS, "label": LABELS}))
    assert fitted(recipe_of(CLASSIFIER), table_of({"tokens": WORDS, "label": LABELS})).program.untyped.params["n_classes"] == 2
    kept = fitted(recipe_of(CLASSIFIER, n_classes=7), table_of({"tokens": WORDS, "label": LABELS}))
    assert kept.program.untyped.params["n_classes"] == 7  # given, and enough


def test_too_few_rows_are_refused():
    """One must be held out."""
    data = examples_of(
        table_of({"tokens": ["a"] * 9, "label": ["b"] * 9}), recipe_of(CLASSIFIER).program, ByteTokenizer(), seq_len=9
    )
    with pytest.raises(TrainingError, match="has 9 rows to learn from; there must be 10 at least"):
        Examples().check(data, 9)


@pytest.fixture
def reviews(tmp_path):
    """A table of texts of unequal length whose class is told by a word, in a file."""
    path = tmp_path / "reviews.jsonl"
    rows = [{"tokens": f"{'good' if n % 3 else 'bad'} {'very ' * (n % 4)}film", "label": str(n % 3 > 0)} for n in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def prepared(path):
    """Return the fitted recipe, the tokenizer and the data of a table."""
    table = read_table([path])
    tokenizer = characters_of("".join(table.columns["tokens"]))
    recipe = fitted(recipe_of(CLASSIFIER, vocab=tokenizer.size), table)
    return recipe, tokenizer, examples_of(table, recipe.program, tokenizer, seq_len=64)


SETTINGS = TrainSettings(
    steps=40,
    batch_size=8,
    seq_len=64,
    learning_rate=0.03,
    warmup_steps=4,
    weight_decay=0.0,
    validate_every=10,
    save_every=10,
    log_every=1,
)


def test_a_run_equals_a_loop_that_is_written_out(reviews, tmp_path):
    """Of cross-entropy with torch's AdamW, step by step."""
    recipe, tokenizer, data = prepared(reviews)
    result = train(recipe.compile(seed=0), tokenizer, data, SETTINGS, tmp_path / "run", recipe=recipe.text, show=Quiet())
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]

    model = recipe.compile(seed=0)
    rows = [json.loads(line) for line in reviews.read_text().splitlines()]
    kept = [row for number, row in enumerate(rows) if number % 10 != 9]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.03, betas=(0.9, 0.95), weight_decay=0.0)
    generator = torch.Generator()
    for step in range(5):
        at_batch(generator, 0, step)
        chosen = [kept[row] for row in torch.randint(len(kept), (8,), generator=generator).tolist()]
        longest = max(len(row["tokens"]) for row in chosen)
        tokens = torch.zeros(8, longest, dtype=torch.int64)
        valid = torch.zeros(8, longest, dtype=torch.bool)
        for place, row in enumerate(chosen):
            ids = tokenizer.encode(row["tokens"])
            tokens[place, : len(ids)] = torch.tensor(ids)
            valid[place, : len(ids)] = True
        right = torch.tensor([["False", "True"].index(row["label"]) for row in chosen])
        loss = F.cross_entropy(model(tokens, valid).logits, right)
        assert lines[step]["loss"] == pytest.approx(float(loss.detach()), abs=1e-6)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = lines[step]["learning_rate"]
        optimizer.step()
        optimizer.zero_grad()

    assert result.validation.accuracy == 1.0
    assert str(result).endswith("nats per example, accuracy 1.000")
    opened = open_run(tmp_path / "run")
    assert opened.labels == {"label": ("False", "True")}
    again = validate(opened.model, data, Examples(), batch_size=8, seq_len=64)
    assert again == result.validation and lines[-1]["validation_accuracy"] == 1.0


def weights(path) -> dict[str, Tensor]:
    """Return all tensors of the latest checkpoint."""
    run = read_run(path)
    saved = run.checkpoint(run.name(None))
    return {**saved.model, **saved.optimizer, **saved.random}


def test_a_run_on_a_table_goes_on_as_if_it_had_not_stopped(reviews, tmp_path):
    """Bit for bit; and not with another table."""
    recipe, tokenizer, data = prepared(reviews)
    train(recipe.compile(seed=0), tokenizer, data, SETTINGS, tmp_path / "whole", recipe=recipe.text, show=Quiet())

    def stop(step: int) -> None:
        if step == 17:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(recipe.compile(seed=0), tokenizer, data, SETTINGS, tmp_path / "run", recipe=recipe.text, show=Quiet(stop))
    resume(tmp_path / "run", show=Quiet())
    mine, theirs = weights(tmp_path / "run"), weights(tmp_path / "whole")
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)
    changed = reviews.read_text().replace("film", "book", 1)
    reviews.write_text(changed)
    with pytest.raises(TrainingError, match="is not the table that this run started with: its checksum differs"):
        resume(tmp_path / "run", steps=50, show=Quiet())


def test_an_index_without_a_row_is_told_with_its_node(tmp_path):
    """A category beyond an embedding."""
    table = table_of({"numbers": [[0.1] * 6] * 20, "categories": [[0, 3]] * 20, "label": ["a", "b"] * 10})
    recipe = composer.load("mlp_table", {"sizes": [2, 2]})
    data = examples_of(table, recipe.program, ByteTokenizer(), seq_len=1)
    with pytest.raises(TrainingError, match=r"beyond the last row of a table of the model: .*, and columns\.1\.embed"):
        train(
            recipe.compile(seed=0),
            ByteTokenizer(),
            data,
            TrainSettings(steps=1),
            tmp_path / "run",
            recipe=recipe.text,
            show=Quiet(),
        )
