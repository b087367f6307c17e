"""`arco train` on tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from composer.train import open_run
from tests.cli.conftest import Arco

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
TRAIN = ("--steps", 60, "--batch-size", 8, "--learning-rate", 0.05, "--warmup-steps", 5, "--run", "run")


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """A table of reviews with their sentiment, and a recipe for it beside it."""
    rows = [f"a {'good' if n % 2 else 'dreadful'} film number {n},{'pos' if n % 2 else 'neg'}" for n in range(40)]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,sentiment", *rows, ""]), encoding="utf-8")
    (tmp_path / "classifier.yaml").write_text(CLASSIFIER, encoding="utf-8")
    return tmp_path / "reviews.csv"


def test_a_classifier_learns_and_is_resumed(arco: Arco, reviews: Path) -> None:
    """Sizes are set from the table, and are those of the run."""
    command = ("train", "classifier.yaml", "--data", "reviews.csv", "--column", "tokens=review", "--column", "label=sentiment")
    done = arco(*command, *TRAIN)
    assert done.code == 0
    assert "n_classes is set to 2, which fits reviews.csv" in done.out
    assert "`label`: 2 classes, neg, pos" in done.out
    assert "nats per example, accuracy 1.000" in done.out and "generate text" not in done.out
    opened = open_run(reviews.parent / "run")
    assert opened.labels == {"label": ("neg", "pos")} and opened.settings.columns == ("tokens=review", "label=sentiment")
    silent = arco("generate", "run", "--prompt", "a good film")
    assert silent.code == 2 and "in Python, composer.train.open_run(RUN)" in silent.err
    assert arco("train", "--resume", "run", "--steps", 62).code == 0
    lines = [json.loads(line) for line in (reviews.parent / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert lines[-1]["step"] == 62 and lines[-1]["validation_accuracy"] == 1
    reviews.write_text(reviews.read_text("utf-8").replace("good", "fine", 1), encoding="utf-8")
    done = arco("train", "--resume", "run", "--steps", 64)
    assert (done.code, "is not the table that this run started with" in done.err) == (2, True)


def test_a_classifier_starts_from_a_masked_language_model(arco: Arco, reviews: Path) -> None:
    """Its embedding fits: the tokenizer is that of the run, with its mask."""
    body = CLASSIFIER.replace("sequence_classification", "masked_lm").replace("n_classes: 5, ", "")
    body = body.replace("  pool: {type: pool, mode: mean, in: {x: embed, valid: valid}}\n", "").replace("n_classes", "vocab")
    (reviews.parent / "body.yaml").write_text(body, encoding="utf-8")
    (reviews.parent / "text.txt").write_text("a good or a dreadful film, number 0123456789\n" * 20, encoding="utf-8")
    first = arco("train", "body.yaml", "--data", "text.txt", "--steps", 2, "--seq-len", 16, "--run", "first")
    assert first.code == 0
    columns = ("--column", "tokens=review", "--column", "label=sentiment")
    done = arco("train", "classifier.yaml", "--data", "reviews.csv", *columns, *TRAIN, "--init", "first")
    assert done.code == 0
    assert "of first, step-000002" in done.out and "another shape" not in done.out.replace("of another shape, so new: head", "")
    before, after = (open_run(reviews.parent / name) for name in ("first", "run"))
    assert after.tokenizer == before.tokenizer and after.tokenizer.size == after.model.embed.num_embeddings  # type: ignore[union-attr]


def test_an_answer_ends(arco: Arco, tmp_path: Path) -> None:
    """At the end token, long before the most that may be written."""
    rows = [json.dumps({"question": f"{a}+{b}=", "answer": str(a + b)}) for a in range(4) for b in range(4)] * 4
    (tmp_path / "sums.jsonl").write_text("\n".join(rows), encoding="utf-8")
    sizes = ("--set", "d_model=32", "--set", "n_layers=1", "--set", "n_heads=2")
    settings = ("--steps", 150, "--batch-size", 32, "--learning-rate", 0.02, "--warmup-steps", 5, "--seq-len", 8, "--run", "run")
    assert arco("train", "gpt_mini", *sizes, "--data", "sums.jsonl", "--column", "prompt=question", *settings).code == 0
    done = arco("generate", "run", "--prompt", "3+2=", "--temperature", 0.01, "--max-new-tokens", 50)
    assert (done.code, done.out) == (0, "3+2=5\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("classifier.yaml", "--data", "reviews.csv"), "needs `tokens`, int[batch, time], and reviews.csv has no column"),
        (("classifier.yaml", "--data", "text.txt"), "other recipes learn from a table: --data FILE.csv"),
        (("gpt_mini", "--data", "text.txt", "--column", "a=b"), "--column only works with tables"),
        (("bert", "--data", "reviews.csv"), "a recipe with the task masked_lm is trained on texts, not on a table"),
        (("classifier.yaml", "--data", "reviews.csv", "--data", "text.txt"), "text.txt is no table"),
        (("captioner", "--data", "reviews.csv"), "needs `image`, float[batch, 3, 224, 224]"),
        (("mlp_table", "--data", "reviews.csv", "--tokenizer", "bytes"), "needs `numbers`, float[batch, 6]"),
    ],
)
def test_what_does_not_fit_is_told_before_a_folder_is_made(arco: Arco, reviews: Path, words: tuple[str, ...], said: str) -> None:
    """In one line, with what to do."""
    (reviews.parent / "text.txt").write_text("a text\n", encoding="utf-8")
    done = arco("train", *words, "--steps", 1)
    assert (done.code, said in done.err, (reviews.parent / "runs").exists()) == (2, True, False)
    assert "Traceback" not in done.err


def test_rows_that_are_too_long_are_counted(arco: Arco, reviews: Path) -> None:
    """They are cut, and where all tokens have targets left out."""
    columns = ("--column", "tokens=review", "--column", "label=sentiment")
    done = arco("train", "classifier.yaml", "--data", "reviews.csv", *columns, "--steps", 1, "--seq-len", 4)
    assert (done.code, "40 of 40 rows have more than 4 tokens and are cut" in done.err) == (0, True)
    done = arco("train", "gpt_mini", "--data", "reviews.csv", "--column", "tokens=review", "--steps", 1, "--seq-len", 4)
    assert (done.code, "reviews.csv has 0 rows to learn from, and 40 rows more than 4 tokens" in done.err) == (2, True)


@pytest.mark.slow
def test_a_captioner_writes_about_an_image(arco: Arco, tmp_path: Path) -> None:
    """The training command says how; a caption depends on the image, and may begin with a prompt."""
    image = pytest.importorskip("PIL.Image")
    for color in ("red", "blue"):
        image.new("RGB", (20, 14), color).save(tmp_path / f"{color}.png")
    rows = "".join(f"{color}.png,{color}\n" for color in ("red", "blue") * 20)
    (tmp_path / "captions.csv").write_text(f"image,caption\n{rows}", encoding="utf-8")
    sizes = ["n_layers=1", "d_model=16", "n_heads=2", "size=8", "patch=4", "d_image=16", "n_image_layers=1", "n_image_heads=2"]
    sets = [word for size in sizes for word in ("--set", size)]
    quick = ["--seq-len", 8, "--batch-size", 8, "--learning-rate", 0.01, "--warmup-steps", 1, "--device", "cpu"]
    data = ["--data", "captions.csv", "--column", "tokens=caption"]
    done = arco("train", "captioner", *sets, "--set", "context=16", "--set", "dropout=0", *data, *quick, "--steps", 60)
    run = Path("runs") / "captioner"
    assert done.code == 0 and done.out.endswith(f"generate text: arco generate {run} --image FILE\n")
    words = ["generate", run, "--temperature", 0, "--max-new-tokens", 8, "--device", "cpu"]
    for color in ("red", "blue"):
        written = arco(*words, "--image", f"{color}.png")
        assert (written.code, written.out) == (0, f"{color}\n")
    assert arco(*words, "--image", "red.png", "--prompt", "re").out == "red\n"
    refused = arco(*words, "--prompt", "red")
    assert refused.code == 2 and "writes about an image\n  = name it: arco generate RUN --image FILE" in refused.err


@pytest.mark.slow
def test_a_number_for_each_text_is_given_or_told(arco: Arco, tmp_path: Path) -> None:
    """A mixture of experts by task learned from a column of tasks; the default is not taken silently."""
    rows = "".join(f"{n % 2},{n} sheep,{n} lambs\n" for n in range(40))
    (tmp_path / "pairs.csv").write_text(f"task,source,target\n{rows}", encoding="utf-8")
    sizes = ["n_layers=2", "d_model=16", "n_heads=2", "hidden=16", "n_tasks=2", "n_experts=2"]
    sets = [word for size in sizes for word in ("--set", size)]
    done = arco(
        "train", "task_moe", *sets, "--data", "pairs.csv", "--seq-len", 12, "--steps", 1, "--warmup-steps", 1, "--device", "cpu"
    )
    assert done.code == 0
    words = ["generate", Path("runs") / "task_moe", "--prompt", "7 sheep", "--max-new-tokens", 4, "--device", "cpu"]
    default, same, other = arco(*words), arco(*words, "--input", "task=0"), arco(*words, "--input", "task=1")
    assert default.err == "`task` is 0, its default; --input task=N gives another\n"
    assert (same.code, same.out, same.err) == (0, default.out, "") and other.out != default.out
    refused = arco(*words, "--input", "domain=1")
    assert refused.code == 2 and refused.err.endswith("  = it reads task\n")
