"""A run folder with damage: one line that names the file, or the numbers of a run without damage."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from composer.train import TrainingError, open_run
from composer.train.run.disk import aside_of
from composer.train.run.manifest import FILES, parse, render, sealed
from composer.train.run.reader import read_run
from tests.train import scenario
from tests.train.scenario import build, ended, interrupted, tried, weights

CHECKPOINT = Path("checkpoints", "step-000004")


def cut(path: Path) -> None:
    """Keep the first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Turn one bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 2
    path.write_bytes(content)


def link(path: Path) -> None:
    """Put a symbolic link to the same content in its place."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def folder(path: Path) -> None:
    """Put a folder in its place."""
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    """Put a pipe in its place, which nobody writes."""
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "flipped": flip,
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "no JSON": lambda path: path.write_bytes(b'{"a": '),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "nested": lambda path: path.write_bytes(b"[" * 100_000),
    "other JSON": lambda path: path.write_bytes(b"[3]\n"),
    "empty JSON": lambda path: path.write_bytes(b"{}\n"),
    "huge number": lambda path: path.write_bytes(b"9" * 5000),
    **({} if os.name == "nt" else {"link": link, "folder": folder, "pipe": pipe}),
}
FREE = {
    "metrics.jsonl": {"longer"},  # what no checkpoint has sealed is written again
    "lock": {*DAMAGES} - {"link", "folder", "pipe"},
}
"""What does no harm, and must do none."""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A run that died, and the result of the run that did not."""
    place = tmp_path_factory.mktemp("damage")
    interrupted(place / "run")
    shutil.copytree(place / "run", place / "whole")
    return place / "run", weights(place / "run"), ended(place / "whole")


@pytest.fixture
def run(base, tmp_path):
    """A copy of the run that died."""
    return shutil.copytree(base[0], tmp_path / "run")


NAMES = [
    "manifest.json",
    *FILES,
    "metrics.jsonl",
    "lock",
    *(str(CHECKPOINT / f"{name}.safetensors") for name in ("model", "random")),
]
NAMES += [str(CHECKPOINT / "optimizer.safetensors"), str(CHECKPOINT / "state.json")]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_damage_of_every_file_is_told_or_does_no_harm(base, run, name, damage):
    """The line names the file and there is something to do; nothing else is ever computed."""
    _, opened, expected = base
    DAMAGES[damage](run / name)
    outcomes = {tried(lambda: weights(run), opened, Path(name)), tried(lambda: ended(run), expected, Path(name))}
    assert (outcomes == {scenario.KEPT}) == (damage in FREE.get(name, ()))


@pytest.mark.parametrize("folder", ["checkpoints", str(CHECKPOINT)])
def test_a_folder_of_a_run_is_not_looked_for_elsewhere(run, folder):
    """A symbolic link to the right one is refused too."""
    link(run / folder)
    with pytest.raises(TrainingError, match=f"{re.escape(folder)} is a symbolic link"):
        open_run(run, build=build)


def test_a_run_may_itself_be_behind_a_link(base, run, tmp_path):
    """Such as on a larger disk."""
    (tmp_path / "short").symlink_to(run, target_is_directory=True)
    assert ended(tmp_path / "short") == base[2]


def test_a_file_of_another_run_is_told(run, tmp_path):
    """Whole as it is."""
    text = (run / "settings.json").read_text(encoding="utf-8")
    (run / "settings.json").write_text(text.replace("0.003", "0.009"), encoding="utf-8")
    with pytest.raises(TrainingError, match=r"settings.json is damaged: its checksum differs from the manifest"):
        open_run(run, build=build)


def test_a_run_of_an_older_version_says_so(run):
    """It has no manifest; the folder is not taken for an empty one."""
    (run / "manifest.json").unlink()
    with pytest.raises(TrainingError, match=r"run has no manifest.json: an older version of Composer wrote the run") as error:
        open_run(run, build=build)
    assert "train the run again" in error.value.hint
    with pytest.raises(TrainingError, match="is a run folder already"):
        scenario.trained(run)


@pytest.mark.parametrize("name", ["recipe.yaml", "metrics.jsonl", "checkpoints"])
def test_what_a_run_would_replace_is_told(tmp_path, name):
    """It may be somebody's own."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).touch()
    with pytest.raises(TrainingError, match=f"run contains {name} already"):
        scenario.trained(tmp_path / "run")


def test_settings_that_were_being_replaced_are_found(base, run):
    """The process died between the manifest and the file: both have the new settings under the old name, or neither."""
    old = (run / "settings.json").read_bytes()
    longer = shutil.copytree(run, run.with_name("longer"))
    scenario.continued(longer, steps=7)
    aside_of(run / "settings.json").write_bytes(old.replace(b'"steps": 6', b'"steps": 7'))  # before the manifest was replaced
    assert open_run(run, build=build).settings.steps == 6
    manifest = parse((run / "manifest.json").read_bytes(), run / "manifest.json")
    manifest.files["settings.json"] = read_run(longer).manifest.files["settings.json"]
    (run / "manifest.json").write_bytes(render(manifest))
    assert open_run(run, build=build).settings.steps == 7
    assert ended(run) == scenario.result(longer)
    assert not aside_of(run / "settings.json").exists()


# -- files of somebody else, whose checksums are right


def reseal(run: Path, name: str, content: bytes) -> None:
    """Write a file of a run, and its checksum into the manifest."""
    values = json.loads((run / "manifest.json").read_bytes())
    path = run / name
    path.write_bytes(content)
    files = values["files"] if path.parent == run else values["checkpoints"][path.parent.name]["files"]
    seals = files if name != "metrics.jsonl" else values["checkpoints"]["step-000004"]
    digest = hashlib.sha256(content).hexdigest()
    seals["metrics" if name == "metrics.jsonl" else path.name] = {"bytes": len(content), "sha256": digest}
    del values["sha256"]
    (run / "manifest.json").write_bytes(sealed(values))


def tensors(**values: torch.Tensor) -> bytes:
    """Return a file of tensors."""
    return safetensors.torch.save(values)


STATE = {"format": 1, "step": 4, "tokens": 8, "seconds": 0.5, "report": None}
BPE = {"type": "BPE", "vocab": {"a": 7}, "merges": []}
WRONG: list[tuple[str, bytes, str]] = [
    ("recipe.yaml", b"/etc/passwd", "is not the whole text of a recipe: '/etc/passwd' is a name or a path"),
    ("recipe.yaml", b"../other.yaml", r"is not the whole text of a recipe: '\.\./other.yaml' is a name"),
    ("recipe.yaml", b"gpt2", "is not the whole text of a recipe: 'gpt2' is a name or a path"),
    ("recipe.yaml", b"recipe: r\nextends: ../../secret.yaml\n", "is not the whole text of a recipe: `extends` names other files"),
    ("recipe.yaml", b"recipe: r\nuses: [mine.yaml]\n", "is not the whole text of a recipe: `uses` names other files"),
    ("recipe.yaml", b"a: \xff\n", "is not UTF-8 text"),
    ("settings.json", b"[]", "does not contain settings"),
    ("settings.json", b'{"steps": 3}', "lacks the setting"),
    ("settings.json", b"", "is empty"),
    ("tokenizer.json", b'["ab"]', "its characters are not a list of single ones"),
    ("tokenizer.json", b"[]", "its characters are not a list of single ones"),
    ("tokenizer.json", b'["a", "a"]', "a character is there twice"),
    ("tokenizer.json", b'["\\ud800"]', "half of one"),
    ("tokenizer.json", b'{"text": "bytes", "marks": [1]}', "its marks are not different words"),
    ("tokenizer.json", b'{"text": {"text": "bytes", "marks": ["<a>"]}, "marks": ["<b>"]}', "is not a tokenizer"),
    ("tokenizer.json", json.dumps({"model": BPE}).encode(), "is not a byte-level BPE tokenizer"),
    ("tokenizer.json", b'"bytes"', "the model has a vocabulary of [0-9]+ tokens, the tokenizer one of 256"),
    ("data.json", b'{"path": 3, "sha256": "x"}', "has another form: `path`"),
    ("data.json", b'{"path": "/dev/zero", "sha256": "x"}', "cannot read /dev/zero: it is a device"),
    ("data.json", b'{"path": "a\\u0000b", "sha256": "x"}', "cannot read a"),
    ("data.json", b'{"path": "a\\nb\\u2028c", "sha256": "x"}', "cannot read a b c: no such file"),
    ("metrics.jsonl", b"nonsense\n", "is not JSON"),
    ("metrics.jsonl", b'{"loss": 3}\n', "its last line has no step"),
    (
        str(CHECKPOINT / "state.json"),
        json.dumps({**STATE, "format": 2}).encode(),
        "has the format 2; this version of Composer reads",
    ),
    (str(CHECKPOINT / "state.json"), json.dumps({**STATE, "step": 5}).encode(), "is of the step 5, its folder is step-000004"),
    (str(CHECKPOINT / "state.json"), json.dumps({**STATE, "tokens": "8"}).encode(), "has another form: `tokens`"),
    (
        str(CHECKPOINT / "state.json"),
        json.dumps({**STATE, "report": {"line": {}, "batches": 0}}).encode(),
        "a report of another step",
    ),
    (str(CHECKPOINT / "model.safetensors"), b"PK\x03\x04 pickle", "is not a file of tensors"),
    (str(CHECKPOINT / "model.safetensors"), b"\xff" * 7 + b"\x7f" + b" " * 99, "is not a file of tensors"),
    (str(CHECKPOINT / "model.safetensors"), tensors(up=torch.zeros(2)), "does not fit the recipe: it lacks `down.bias`"),
    (str(CHECKPOINT / "optimizer.safetensors"), tensors(up=torch.zeros(2)), "`up` belongs to no parameter"),
    (str(CHECKPOINT / "random.safetensors"), tensors(cpu=torch.zeros(2)), "`cpu` is no state of a random generator"),
    (str(CHECKPOINT / "random.safetensors"), tensors(data=torch.zeros(2)), "does not fit the recipe: it lacks `cpu`"),
]


@pytest.mark.parametrize(
    ("name", "content", "message"), WRONG, ids=[f"{name}-{number}" for number, (name, *_) in enumerate(WRONG)]
)
def test_a_file_of_another_form_is_told_though_its_checksum_is_right(run, name, content, message):
    """Neither a traceback nor a guess; no path is followed out of the folder but that of the text."""
    reseal(run, name, content)
    with pytest.raises(TrainingError, match=message) as error:
        open_run(run, build=build)
        scenario.continued(run)
    assert "\n" not in str(error.value)


def manifest_with(**changes: object) -> Callable[[dict[str, object]], object]:
    """Return a function that changes values of a manifest."""
    return lambda values: {**values, **changes}


MANIFESTS: dict[str, tuple[Callable[[dict[str, object]], object], str]] = {
    "empty": (lambda values: {}, "is not the manifest of a run: it has no format number"),
    "list": (lambda values: {"format": 1, "files": []}, "`files`"),
    "nothing sealed": (manifest_with(files={}, checkpoints={}), "does not seal 'data.json'"),
    "newer": (manifest_with(format=2), "has the format 2; this version of Composer reads the format 1"),
    "text": (manifest_with(format="1"), "has the format '1'"),
    "flag": (manifest_with(format=True), "`format`"),
    "more": (manifest_with(extra=3), "`extra`"),
    "path": (
        manifest_with(checkpoints={"../../x": {"metrics": {"bytes": 0, "sha256": ""}, "files": {}}}),
        r"names a checkpoint '\.\./\.\./x'",
    ),
    "other zeros": (
        manifest_with(checkpoints={"step-0000004": {"metrics": {"bytes": 0, "sha256": ""}, "files": {}}}),
        "names a checkpoint",
    ),
    "no files": (
        manifest_with(checkpoints={"step-000004": {"metrics": {"bytes": 0, "sha256": ""}, "files": {}}}),
        "does not seal 'model.safe",
    ),
    "negative": (
        manifest_with(checkpoints={"step-000004": {"metrics": {"bytes": -1, "sha256": ""}, "files": {}}}),
        "`checkpoints.step-000004.met",
    ),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_that_verifies_nothing_is_refused(run, kind):
    """Also with a right checksum of its own."""
    change, message = MANIFESTS[kind]
    values = json.loads((run / "manifest.json").read_bytes())
    del values["sha256"]
    (run / "manifest.json").write_bytes(sealed(change(values)))
    with pytest.raises(TrainingError, match=f"manifest.json.*{message}") as error:
        read_run(run)
    assert error.value.hint


@pytest.mark.parametrize(("name", "limit"), [("tokenizer.json", "268,435,456"), ("metrics.jsonl", "1,073,741,824")])
def test_a_file_of_any_size_is_not_read_whole(run, name, limit):
    """Though the manifest allows it."""
    values = json.loads((run / "manifest.json").read_bytes())
    seals = values["files"] if name in values["files"] else values["checkpoints"]["step-000004"]
    seals["metrics" if name == "metrics.jsonl" else name]["bytes"] = 1 << 50
    del values["sha256"]
    (run / "manifest.json").write_bytes(sealed(values))
    with pytest.raises(TrainingError, match=f"{name} has more than {limit} bytes"):
        scenario.continued(run)


def test_a_manifest_of_any_size_is_not_read_whole(run):
    """There is a bound."""
    with (run / "manifest.json").open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(TrainingError, match=r"manifest.json has more than 16,777,216 bytes"):
        read_run(run)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("place", [".", "checkpoints", str(CHECKPOINT), "recipe.yaml", "manifest.json"])
def test_what_may_not_be_read_is_told(run, place):
    """A folder or a file of another user."""
    (run / place).chmod(0)
    try:
        with pytest.raises(TrainingError, match=r"cannot read|is not a run folder"):
            open_run(run, build=build)
    finally:
        (run / place).chmod(0o700)


NEEDED = {"manifest.json", "recipe.yaml", "settings.json", "tokenizer.json", str(CHECKPOINT / "model.safetensors")}
"""What a trained model is opened from."""


@pytest.mark.parametrize("name", sorted({*NAMES} - {"lock"}))
def test_a_model_is_opened_from_what_it_needs_alone(base, run, name):
    """A flipped bit elsewhere, or a file that is gone, is for the next step of training to refuse."""
    _, opened, _ = base
    for damage in (flip, Path.unlink):
        damage(run / name)
        if name in NEEDED:
            with pytest.raises(TrainingError, match=re.escape(Path(name).name)):
                weights(run)
        else:
            assert weights(run) == opened
            with pytest.raises(TrainingError, match=re.escape(Path(name).name)):
                ended(run)
