"""`arco train --init` and `--freeze`."""

from __future__ import annotations

from pathlib import Path

from composer.train import open_run
from tests.cli.conftest import Arco


def test_the_command_starts_from_a_run_with_its_tokenizer(arco: Arco, tmp_path: Path) -> None:
    """A text of fewer characters; the tokenizer of the run has more, and the embedding fits."""
    (tmp_path / "long.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 20, encoding="utf-8")
    (tmp_path / "short.txt").write_text("the dog\n" * 90, encoding="utf-8")
    sizes = ("--set", "d_model=16", "--set", "n_heads=2", "--seq-len", 8, "--batch-size", 2, "--warmup-steps", 1)
    first = ("train", "gpt_mini", *sizes, "--set", "n_layers=1", "--data", "long.txt", "--run", "first", "--steps", 2)
    assert arco(*first).code == 0
    second = ("train", "gpt_mini", *sizes, "--set", "n_layers=2", "--data", "short.txt", "--steps", 2, "--init", "first")
    done = arco(*second, "--run", "second", "--freeze", "layers.0.*", "--freeze", "embed.*")
    assert done.code == 0
    assert "of first, step-000002" in done.out + done.err
    assert "new: layers.1." in done.out + done.err
    before, after = (open_run(tmp_path / name) for name in ("first", "second"))
    assert after.tokenizer.size == before.tokenizer.size == 28
    assert after.settings.freeze == ("layers.0.*", "embed.*")
    for name, value in before.model.state_dict().items():
        assert value.equal(after.model.state_dict()[name]) == name.startswith(("layers.0.", "embed.")), name
    done = arco(*second, "--run", "third", "--tokenizer", "characters")
    assert (done.code, "of another shape, so new: embed.weight" in done.out + done.err) == (0, True)
    done = arco(*second, "--run", "fourth", "--freeze", "embed.wieght")
    assert (done.code, "did you mean `embed.weight`?" in done.out + done.err, (tmp_path / "fourth").exists()) == (2, True, False)
    done = arco("train", "--resume", "second", "--init", "first", "--steps", 3)
    assert (done.code, "a resumed run starts from its own checkpoint" in done.out + done.err) == (2, True)
    done = arco(*first[:-4], "--run", "fifth", "--checkpoint", "step-000002")
    assert (done.code, "--checkpoint only works with --resume and --init" in done.out + done.err) == (2, True)
