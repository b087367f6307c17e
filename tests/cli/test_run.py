"""`train`, `generate` and `demo`, on texts and models that take a second."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path

import pytest

import composer
from composer.cli import demo, demo_models
from composer.train import RunFolder, split
from tests.cli.conftest import Arco
from tests.train.test_damage import reseal

TEXT = "HAMLET counts:\n" + "".join(f"{n} sheep and {n * n} lambs ran over the hill.\n" for n in range(60))
SMALL = ["--set", "n_layers=1", "--set", "d_model=16", "--set", "n_heads=2"]
QUICK = ["--steps", 3, "--batch-size", 2, "--seq-len", 8, "--warmup-steps", 1, "--device", "cpu"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Sixty lines about sheep, and the demo's prompt."""
    file = tmp_path / "sheep.txt"
    file.write_text(TEXT, encoding="utf-8", newline="\n")
    return file


def test_a_translator_is_trained_on_pairs_and_translates(arco: Arco, tmp_path: Path) -> None:
    """What it writes is its own text alone; a search finds the same each time; a line that is no pair is named."""
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("".join(f"{n} sheep\t{n} lambs\n" for n in range(40)), encoding="utf-8", newline="\n")
    sizes = [*SMALL, "--set", "hidden=16"]
    done = arco(
        "train", "transformer", *sizes, "--data", pairs, *QUICK[:4], "--seq-len", 12, "--warmup-steps", 1, "--device", "cpu"
    )
    assert (done.code, done.err) == (0, "")
    assert "per character" in done.out and "generate text" in done.out
    run = Path("runs") / "transformer"
    words = ["generate", run, "--prompt", "7 sheep", "--max-new-tokens", 9, "--device", "cpu"]
    written = arco(*words)
    assert (written.code, written.err) == (0, "") and not written.out.startswith("7 sheep")
    best = arco(*words, "--num-beams", 3)
    assert (best.code, best.err) == (0, "") and best == arco(*words, "--num-beams", 3, "--seed", 4)
    pairs.write_text("".join(f"{n} sheep\t{n} lambs{' and more' * (n % 4 == 0)}\n" for n in range(40)), encoding="utf-8")
    some = arco("train", "transformer", *sizes, "--data", pairs, *QUICK[:4], "--seq-len", 12, *QUICK[6:], "--run", "some")
    assert some.code == 0
    assert some.err == "warning: 10 of 40 pairs have more than 12 tokens and are left out; --seq-len sets another length\n"
    measured = arco("evaluate", "some", "--device", "cpu", "--format", "json")
    assert json.loads(measured.out)["tokens"] == sum(len(f"{n} lambs") + 1 for n in range(37, 40))
    pairs.write_text("no pair\n", encoding="utf-8")
    refused = arco("train", "transformer", *sizes, "--data", pairs, *QUICK)
    assert refused.code == 2 and refused.err.startswith(f"arco: {pairs}, line 1 is not a pair of texts: 'no pair'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "line"),
    [(["transformer", "--set", "hidden=16"], "7 sheep\t7 lambs"), (["gpt_mini", "--end-tokens", "line"], "7 sheep")],
)
def test_lines_may_end_as_on_windows(arco: Arco, tmp_path: Path, words: list[str], line: str) -> None:
    """Tokenizer and losses are the same; a text that is not read by lines keeps its carriage returns, which is warned of."""
    found = []
    for name, end in (("lf", "\n"), ("crlf", "\r\n")):
        file = tmp_path / f"{name}.txt"
        file.write_bytes(f"{line}{end}".encode() * 40)
        done = arco("train", *words, *SMALL, "--data", file, *QUICK[:4], "--seq-len", 12, *QUICK[6:], "--run", name)
        assert (done.code, done.err) == (0, "")
        folder = RunFolder(Path(name))
        rows = [json.loads(row) for row in folder.metrics.read_text().splitlines()]
        found.append((folder.tokenizer.read_text(), [row.get("loss") for row in rows]))
    assert found[0] == found[1] and any(found[0][1])
    done = arco("train", "gpt_mini", *SMALL, "--data", file, *QUICK)
    assert done.code == 0 and "has carriage returns" in done.err


@pytest.mark.slow
def test_the_padding_of_a_recipe_is_that_of_the_tokenizer(arco: Arco, text: Path) -> None:
    """Not a character, and the same in a run that starts from this one, or once it is exported."""
    sizes = [*SMALL, "--set", "hidden=16", "--set", "context=64"]
    quick = ["--data", text, "--seq-len", 12, "--batch-size", 2, "--steps", 1, "--warmup-steps", 1, "--device", "cpu"]
    done = arco("train", "roberta", *sizes, *quick, "--run", "one")
    tokens = len({*TEXT}) + 2  # with <mask> and <padding>
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        f"vocab is set to {tokens}, the size of the tokenizer, and padding is set to {tokens - 1}, its padding token\n"
    )
    again = arco("train", "--init", "one", *quick, "--run", "two")
    assert again.code == 0 and "is set to" not in again.out
    taught = arco("train", "roberta", *sizes, *quick, "--teacher", "one", "--run", "student")
    assert taught.code == 0 and "distillation" in taught.out
    assert arco("train", "bert", *sizes, *quick, "--run", "without").code == 0
    refused = arco("train", "roberta", *sizes, *quick, "--teacher", "without", "--run", "none")
    assert refused.code == 2 and "the recipe needs a padding token, which the other tokenizer lacks" in refused.err
    assert arco("export", "one", "--to", "transformers", "--model-type", "roberta", "-o", "published").code == 0
    assert composer.load("published").program.untyped.params["padding"] == tokens - 1


def test_texts_with_gaps_are_filled_and_hidden_words_are_not_written(arco: Arco, text: Path) -> None:
    """A denoiser answers with its marks; a model that is asked for hidden words writes nothing."""
    small = [*SMALL, "--set", "hidden=16"]
    length = [*QUICK[:4], "--seq-len", 24, "--warmup-steps", 1, "--device", "cpu"]
    done = arco("train", "t5", *small, "--set", "head_dim=8", "--data", text, *length)
    assert (done.code, done.err) == (0, "") and "per character" not in done.out
    filled = arco("generate", Path("runs") / "t5", "--prompt", "7 <0> and 49 <1>", "--max-new-tokens", 5, "--device", "cpu")
    assert (filled.code, filled.err) == (0, "")
    done = arco("train", "bert", *small, "--data", text, *length)
    assert (done.code, done.err) == (0, "") and "generate text" not in done.out
    refused = arco("generate", Path("runs") / "bert", "--prompt", "7", "--device", "cpu")
    assert refused.code == 2 and refused.err.startswith("arco: a model of the task masked_lm generates no text\n")
    filled = arco("generate", Path("runs") / "bert", "--prompt", "7 <mask>heep and <mask>", "--device", "cpu")
    assert (filled.code, filled.err) == (0, "") and len(filled.out) == len("7 sheep and s\n")
    assert filled.out.startswith("7 ") and "heep and " in filled.out and "<" not in filled.out
    shown = arco("tokens", "7 <mask>", "--tokenizer", Path("runs") / "bert")
    assert (shown.code, shown.err) == (0, "") and [line.split()[1] for line in shown.out.splitlines()[:3]] == ["7", "␣", "<mask>"]


def test_train_generate_and_resume_follow_one_another(arco: Arco, text: Path) -> None:
    """Each command is the one that the one before tells to type; the run keeps what was set."""
    vocab = len(set(TEXT))
    done = arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == f"vocab is set to {vocab}, the size of the tokenizer"
    run = Path("runs") / "gpt_mini"
    assert f"generate text: arco generate {run} --prompt TEXT" in done.out

    kept = composer.load(RunFolder(run).recipe)
    assert (kept.program.untyped.params["vocab"], kept.program.untyped.params["d_model"]) == (vocab, 16)
    count = sum(parameter.numel() for parameter in kept.compile(device="meta").parameters())
    assert f"training gpt_mini, {count:,} parameters, on {text}; run folder {run}" in done.out

    words = ["generate", run, "--prompt", "7 sheep", "--max-new-tokens", 20, "--device", "cpu"]
    written = arco(*words)
    assert (written.code, written.err) == (0, "")
    assert written.out.startswith("7 sheep") and len(written.out) == len("7 sheep") + 20 + 1
    assert set(written.out) <= set(TEXT)
    assert arco(*words) == written
    assert arco(*words, "--seed", 1).out != written.out
    context = json.loads(RunFolder(run).settings.read_text(encoding="utf-8"))["seq_len"]
    best = arco("generate", run, "--prompt", "7 sheep", "--num-beams", 2, "--device", "cpu")
    assert (best.code, best.err, len(best.out)) == (0, "", context + 1)  # as long as the context, and a line break

    resumed = arco("train", "--resume", run, "--steps", 5, "--device", "cpu")
    assert (resumed.code, resumed.err) == (0, "")
    assert "5 steps in " in resumed.out
    assert json.loads(RunFolder(run).settings.read_text(encoding="utf-8"))["steps"] == 5
    again = arco("train", "--resume", run, "--steps", 5)
    assert (again.code, again.err) == (
        2,
        f"arco: {run} has already completed its 5 steps\n  = increase the number of steps to continue\n",
    )
    assert arco(*words, "--checkpoint", "step-000003").out == written.out


PACKED = """
recipe: packed
task: causal_lm
params: {vocab: 64}
inputs: {tokens: "int[batch, time]", documents: "int[batch, time]?"}
graph:
  embed: {type: embedding, vocab: vocab, dim: 8}
  attn: {type: attention, heads: 1, mask: causal and documents(documents)}
  head: {type: linear, out: vocab}
outputs: {logits: head}
"""


def test_a_run_is_announced_once_all_of_it_is_checked(arco: Arco, text: Path) -> None:
    """What is frozen is known by then, too."""
    refused = arco("train", "gpt_mini", "--data", text, *QUICK, "--freeze", "emb.weight")
    assert refused.code == 2 and "training" not in refused.out and "emb.weight" in refused.err
    done = arco("train", "gpt_mini", "--data", text, *QUICK, "--freeze", "embed.*")
    assert "parameters, of which " in done.out


def test_a_model_that_needs_more_than_a_text_is_refused_by_name(arco: Arco, text: Path) -> None:
    """To train it, to resume a run of it, and to generate: where it may do without, all three do."""
    for name, recipe in (("packed", PACKED), ("needs", PACKED.replace("?", "").replace("packed", "needs"))):
        Path(f"{name}.yaml").write_text(recipe, encoding="utf-8")
    refused = arco("train", "needs.yaml", "--data", text, *QUICK)
    assert refused.code == 2 and "step" not in refused.out
    assert refused.err.startswith(
        "arco: the model needs the input `documents`, and a text gives only `tokens`\n  = make it optional"
    )
    assert not (Path("runs") / "needs").exists()

    assert arco("train", "packed.yaml", "--data", text, *QUICK).code == 0
    run = Path("runs") / "packed"
    words = ["generate", run, "--prompt", "7 sheep", "--max-new-tokens", 3, "--device", "cpu"]
    assert arco(*words).code == 0
    reseal(run, "recipe.yaml", (run / "recipe.yaml").read_bytes().replace(b"time]?", b"time]"))
    for more in ([], ["--num-beams", 2]):
        refused = arco(*words, *more)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err.startswith(
            "arco: the model reads `documents`, int[batch, time]: a value for each token, and generation"
        )
        assert "call the model in a `session`" in refused.err and "in Python, see composer.decode" in refused.err
    resumed = arco("train", "--resume", run, "--steps", 5, "--device", "cpu")
    assert resumed.code == 2 and resumed.err.startswith("arco: the model needs the input `documents`")


def test_a_run_generates_though_its_optimizer_is_damaged(arco: Arco, text: Path) -> None:
    """Nothing of it is read; to resume is refused."""
    assert arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK).code == 0
    run = Path("runs") / "gpt_mini"
    words = ["generate", run, "--prompt", "7 sheep", "--max-new-tokens", 3, "--device", "cpu"]
    written = arco(*words)
    (run / "checkpoints" / "step-000003" / "optimizer.safetensors").write_bytes(b"")
    assert arco(*words) == written and written.code == 0
    resumed = arco("train", "--resume", run, "--steps", 5, "--device", "cpu")
    assert resumed.code == 2 and "optimizer.safetensors is damaged" in resumed.err


def test_a_second_run_takes_another_folder(arco: Arco, text: Path) -> None:
    """The first is left alone; a folder that is named and taken is refused."""
    words = ["train", "gpt_mini", *SMALL, "--data", text, *QUICK]
    assert arco(*words).code == arco(*words, "--tokenizer", "bytes").code == 0
    assert sorted(folder.name for folder in Path("runs").iterdir()) == ["gpt_mini", "gpt_mini-2"]
    first = Path("runs") / "gpt_mini"
    done = arco(*words, "--run", first)
    assert done.code == 2
    assert done.err.startswith(f"arco: {first} is a run folder already\n  = continue it with `arco train --resume ")
    assert done.out == "", "it is refused before anything is read or compiled"


def test_a_vocabulary_that_is_set_by_hand_stays(arco: Arco, text: Path) -> None:
    """Larger than the text's is wasteful and right; smaller is refused."""
    words = ["train", "gpt_mini", *SMALL, "--data", text, *QUICK]
    done = arco(*words, "--set", "vocab=99")
    assert done.code == 0
    assert "vocab is set" not in done.out
    assert composer.load(RunFolder(Path("runs") / "gpt_mini").recipe).program.untyped.params["vocab"] == 99
    done = arco(*words, "--set", "vocab=5")
    assert done.code == 2
    assert f"the model has a vocabulary of 5 tokens, the tokenizer one of {len(set(TEXT))}" in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--set", "context=600", "--batch-size", 2), "the recipe's context of 600 cuts the text into only 3 windows"),
        (("--set", "context=32", "--batch-size", 4096), "times a batch size of 4096 makes 131,072 tokens per step"),
        (("--set", "context=32", "--batch-size", 2), ""),
        (("--set", "context=600", "--seq-len", 16, "--batch-size", 2), ""),
    ],
)
def test_a_context_too_long_for_the_text_or_the_machine_is_told(
    arco: Arco, text: Path, words: tuple[object, ...], says: str
) -> None:
    """Only where it is the recipe's, which was made for another text and another machine."""
    done = arco(
        "train", "rnn_lm", "--set", "hidden=4", "--data", text, "--steps", 1, "--warmup-steps", 0, "--device", "cpu", *words
    )
    assert done.code == 0
    assert (says in done.err and done.err.startswith("warning: ")) if says else done.err == ""


def test_a_wrong_recipe_is_not_trained(arco: Arco, text: Path) -> None:
    """It ends as `check` does, and leaves no run."""
    done = arco("train", "gpt_mini", "--set", "n_heads=5", "--data", text)
    assert (done.code, done.out) == (1, "")
    assert "error[indivisible]" in done.err
    assert not Path("runs").exists()


ENDLESS = "/dev/zero"


@pytest.mark.skipif(os.name == "nt", reason="there is no device that never ends")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--steps", 0), "`steps` is 0; it must be at least 1"),
        (("--learning-rate", "nan"), "`learning_rate` is nan"),
        (("--device", "nonsense"), "the device nonsense cannot be used"),
        (("--tokenizer", "bytes", "--vocab-size", 300), "--vocab-size only works with --tokenizer bpe"),
        (("--run", "taken.txt/run"), "taken.txt/run cannot be a run folder"),
        (("--run", "old"), "old is a run folder already"),
        (("--checkpoint", "step-000500"), "--checkpoint only works with --resume"),
        ((), "cannot read /dev/zero: it is a device"),
    ],
)
def test_device_folder_and_settings_are_judged_before_the_text_is_read(arco: Arco, words: tuple[object, ...], says: str) -> None:
    """Which may take long; nothing is left behind."""
    Path("taken.txt").touch()
    Path("old").mkdir()
    Path("old", "settings.json").touch()
    before = sorted(Path().rglob("*"))
    done = arco("train", "gpt_mini", *SMALL, "--data", ENDLESS, *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err and len(done.err.splitlines()) <= 2
    assert sorted(Path().rglob("*")) == before


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="folders are protected otherwise there")
def test_a_read_only_folder_is_told_before_the_text_is_read(arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system tells it, also for a folder that would have to be made."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # everything may be written by who runs tests as root
    done = arco("train", "gpt_mini", *SMALL, "--data", ENDLESS, "--run", "new/run")
    assert done.err.startswith(f"arco: new/run cannot be written: {Path.cwd()} is read-only\n")


def test_a_run_goes_back_to_a_checkpoint_that_is_named(arco: Arco, text: Path) -> None:
    """As the error about a damaged one tells to type; the numbers after it are the same again."""
    assert arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK, "--save-every", 1).code == 0
    run = RunFolder(Path("runs") / "gpt_mini")
    weights = (run.checkpoints / "step-000003" / "model.safetensors").read_bytes()
    (run.checkpoints / "step-000003" / "model.safetensors").write_bytes(weights[:-1])
    done = arco("generate", run.path, "--device", "cpu")
    command = f"{run.resume_command} --checkpoint step-000002"
    assert done.code == 2 and done.err.endswith(f"\n  = the previous checkpoint is step-000002: {command}\n")
    assert arco(*command.split()[1:], "--device", "cpu").code == 0
    assert (run.checkpoints / "step-000003" / "model.safetensors").read_bytes() == weights
    assert arco("generate", run.path, "--device", "cpu").code == 0


@pytest.mark.slow
def test_demo_runs_from_the_check_to_the_text(arco: Arco, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a shorter text: each heading is a command, the table compares with counting, and the model writes."""
    monkeypatch.setattr(demo, "plays", lambda: text)
    done = arco("demo", "--steps", 3, "--run", "small", "--device", "cpu")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("run folder: small\n")
    headings = [line.split()[2] for line in done.out.splitlines() if line.startswith("$ arco ")]
    assert headings == ["check", "summary", "train", "draw", "generate"]
    shown = done.out.partition("(lower is better):")[2].partition("$ arco")[0]
    table = [line.rsplit(maxsplit=1) for line in shown.splitlines() if line]
    names = [name.strip() for name, _ in table]
    assert names == [*ROWS, "gpt_mini"]
    assert table[0][1] == f"{surprise(*split(TEXT)):.2f}"
    assert all(0 < float(nats) < math.log(2 * len(set(TEXT))) for _, nats in table)
    written = done.out.partition("--temperature 0.8\n\n")[2].partition("\nThe run folder is small; ")[0]
    assert written.startswith("HAMLET") and len(written) == len("HAMLET") + 500 + 1
    assert RunFolder(Path("small")).recipe.exists()
    assert Path("small/gpt_mini.svg").read_text(encoding="utf-8").startswith("<svg")
    again = arco("demo", "--run", "small")
    assert (again.code, again.out) == (2, "") and again.err.startswith("arco: small is a run folder already\n")


def surprise(seen: str, held_out: str) -> float:
    """Return Witten and Bell's estimate of order one, character by character: what is unseen shares the
    weight of the novel ones.
    """
    counts, alphabet = Counter(seen), len(set(seen + held_out))
    total, kinds = len(seen), len(counts)
    chances = [(counts[character] + kinds / alphabet) / (total + kinds) for character in held_out]
    return -sum(map(math.log, chances)) / len(held_out)


ROWS = ["unigrams", "bigrams", "trigrams", "4-grams", "5-grams"]


def test_compare_keeps_the_rows_that_are_done(arco: Arco, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call trains only what is missing, and writes the same numbers; one that was cut short goes on."""
    monkeypatch.setattr(demo_models, "plays", lambda: text)
    monkeypatch.setattr(demo_models, "SETTINGS", {**demo_models.SETTINGS, "seq_len": 16, "save_every": 1})
    words = ["demo", "--compare", "--only", "rnn_lm", "--device", "cpu", "--steps"]
    first = arco(*words, 4)
    assert (first.code, first.err) == (0, "") and "training rnn_lm" in first.out
    again = arco(*words, 4, "--only", "mlp_lm", "-o", "page.md")
    assert "training rnn_lm" not in again.out and "training mlp_lm" in again.out
    lines = [line for line in again.out.splitlines() if line.startswith("| ")][1:]
    table = {name: figures for name, *figures in ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)}
    assert list(table) == [*ROWS, "rnn_lm", "mlp_lm"]
    assert [line for line in lines if line not in first.out] == [lines[-1]]
    run = RunFolder(Path("runs", "compare", "rnn_lm"))
    model = composer.load(run.recipe).compile(device="meta")
    assert table["rnn_lm"][0] == f"{sum(parameter.numel() for parameter in model.parameters()):,}"
    last = json.loads(run.metrics.read_text(encoding="utf-8").splitlines()[-1])
    assert table["rnn_lm"][1] == f"{last['validation_loss_per_character']:.3f}"
    assert table["unigrams"][1] == f"{surprise(*split(TEXT)):.3f}"
    assert "\n".join(lines) in Path("page.md").read_text(encoding="utf-8")

    longer = arco(*words, 6)
    assert (longer.code, longer.err) == (0, "") and longer.out.startswith(f"run folders: {run.path.parent}\nresuming rnn_lm")
    assert json.loads(run.metrics.read_text(encoding="utf-8").splitlines()[-1])["step"] == 6


def test_compare_begins_a_row_again_that_has_no_checkpoint(arco: Arco, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process was killed before the first one."""
    monkeypatch.setattr(demo_models, "plays", lambda: text)
    monkeypatch.setattr(demo_models, "SETTINGS", {**demo_models.SETTINGS, "seq_len": 16})
    words = ["demo", "--compare", "--only", "rnn_lm", "--device", "cpu", "--steps", 2]

    def killed(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("composer.train.api.fit", killed)
        with pytest.raises(KeyboardInterrupt):
            arco(*words)
    assert RunFolder(Path("runs", "compare", "rnn_lm")).manifest.exists()
    again = arco(*words)
    assert (again.code, again.err) == (0, "") and "training rnn_lm" in again.out


def test_compare_with_other_settings_wants_another_folder(arco: Arco, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one table are of one schedule; more steps go on, as everywhere."""
    monkeypatch.setattr(demo_models, "plays", lambda: text)
    words = ["demo", "--compare", "--only", "rnn_lm", "--device", "cpu", "--steps", 2]
    monkeypatch.setattr(demo_models, "SETTINGS", {**demo_models.SETTINGS, "seq_len": 16})
    assert arco(*words).code == 0
    monkeypatch.setattr(demo_models, "SETTINGS", {**demo_models.SETTINGS, "batch_size": 8})
    done = arco(*words)
    assert done.code == 2 and "batch_size: 16 → 8" in done.err


@pytest.mark.slow
def test_several_texts_and_the_next_tokens(arco: Arco, text: Path) -> None:
    """Each text is the one of its seed alone; the table begins with what is taken at temperature 0."""
    run = Path("runs") / "small"
    assert arco("train", "gpt_mini", *SMALL, *QUICK, "--data", text, "--run", run).code == 0
    words = ["generate", run, "--prompt", "7 sheep", "--max-new-tokens", 9, "--device", "cpu"]
    alone = [arco(*words, "--seed", seed).out for seed in (4, 5)]
    assert arco(*words, "--seed", 4, "--n", 2).out == f"--- seed 4\n{alone[0]}--- seed 5\n{alone[1]}" and alone[0] != alone[1]
    best = arco("generate", run, "--prompt", "7 sheep", "--max-new-tokens", 1, "--temperature", 0, "--device", "cpu").out
    first, second = arco(*words, "--next", 2).out.splitlines()
    rank, chance, token = first.split(maxsplit=2)
    assert (rank, token) == ("1", repr(best.removeprefix("7 sheep")[:-1])) and float(chance) >= float(second.split()[1])
    for wrong, said in (
        (["--n", 2, "--temperature", 0], "at temperature 0 all 2 texts are the same"),
        (["--n", 2, "--num-beams", 2], "--n samples"),
        (["--next", 0], "--next is 0"),
        (["--next", 2, "--n", 2], "--next prints no text"),
        (["--min-p", 2], "`min_p` is 2"),
    ):
        refused = arco(*words, *wrong)
        assert refused.code == 2 and said in refused.err, refused.err


def test_several_prompts_are_answered_together_as_each_alone(arco: Arco, text: Path, tmp_path: Path) -> None:
    """From the command line and from a file, in batches; each with its own seed, and in each other way of answering."""
    assert arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK).code == 0
    words = ["generate", Path("runs") / "gpt_mini", "--device", "cpu", "--max-new-tokens", 9]
    (tmp_path / "prompts.txt").write_text("7 sheep\n\n49 sh\n", encoding="utf-8")
    together = arco(*words, "--prompt", "1", "--prompts", tmp_path / "prompts.txt", "--seed", 3, "--batch-size", 2)
    prompts = ["1", "7 sheep", "49 sh"]
    alone = [arco(*words, "--prompt", prompt, "--seed", seed).out for seed, prompt in enumerate(prompts, 3)]
    heads = [f"--- prompt {number}\n" for number in (1, 2, 3)]
    assert (together.code, together.err) == (0, "")
    assert together.out == "".join(head + text for head, text in zip(heads, alone, strict=True))
    for way in (["--num-beams", 2], ["--next", 2], ["--n", 2, "--seed", 5]):
        several = arco(*words[:-1], 1, *way, "--prompt", "1", "--prompt", "7 sheep")
        one, other = (arco(*words[:-1], 1, *way, "--prompt", prompt).out for prompt in prompts[:2])
        assert several == (0, heads[0] + one + heads[1] + other, "")
    (tmp_path / "prompts.txt").write_text("\n \n", encoding="utf-8")
    refused = arco(*words, "--prompts", tmp_path / "prompts.txt")
    assert refused.code == 2 and refused.err.endswith("prompts.txt is empty\n")


def test_a_draft_changes_nothing_but_what_is_told(arco: Arco, text: Path) -> None:
    """A second run with the same tokens; one with others is refused, and so is a draft where none is of use."""
    assert arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK).code == 0
    assert arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK, "--run", "small", "--seed", 1).code == 0
    assert arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK, "--run", "bytes", "--tokenizer", "bytes").code == 0
    words = ["generate", Path("runs") / "gpt_mini", "--device", "cpu", "--max-new-tokens", 12, "--temperature", 0]
    alone, drafted = arco(*words, "--prompt", "7 sheep"), arco(*words, "--prompt", "7 sheep", "--draft", "small")
    assert drafted[:2] == alone[:2] and alone.err == ""
    assert re.fullmatch(r"\d+ of \d+ drafted tokens accepted \(\d+%\), \d\.\d tokens for each call of the model\n", drafted.err)
    prompts = ["--prompt", "7 sheep", "--prompt", "4"]
    assert arco(*words, *prompts, "--draft", "small", "--draft-tokens", 2).out == arco(*words, *prompts).out
    assert "its tokens are others than those of the model" in arco(*words, "--prompt", "7", "--draft", "bytes").err
    assert "a draft saves nothing with --next" in arco(*words, "--next", 2, "--draft", "small").err
    assert "--draft-tokens is for a draft" in arco(*words, "--draft-tokens", 2).err


def test_a_prompt_cache_changes_nothing_but_what_is_told(arco: Arco, text: Path) -> None:
    """It is made where it is not there; one of another run is refused, and so is what reads no one prompt in a session."""
    for seed, run in enumerate(("one", "other")):
        assert arco("train", "gpt_mini", *SMALL, "--data", text, *QUICK, "--run", run, "--seed", seed).code == 0
    words = ["--device", "cpu", "--max-new-tokens", 12, "--temperature", 0, "--prompt", "7 sheep"]
    cache, alone = ["--prompt-cache", "prompt.safetensors"], arco("generate", "one", *words)
    assert arco("generate", "one", *words, *cache) == alone == (0, alone.out, "")
    told = "7 of 7 tokens of the prompt were in the prompt cache\n"
    assert arco("generate", "one", *words, *cache) == (0, alone.out, told)
    refused = arco("generate", "other", *words, *cache)
    assert refused == (
        2,
        "",
        "arco: prompt.safetensors is of other weights than those of this model\n  = remove it, or name another file\n",
    )
    for more, said in (
        (["--prompt", "4"], "--prompt-cache keeps one prompt, and there are 2"),
        (["--next", 2], "--next reads the prompt in another way"),
        (["--strategies"], "--strategies "),
    ):
        assert said in arco("generate", "one", *words, *more, *cache).err
