"""Models as exported programs of torch: loaded without Composer, they compute the same for all lengths."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import composer
from composer.diagnostics import RecipeError
from composer.published import export_program
from composer.verify.inputs import Draw, draw
from tests.conformance.cases import TINY
from tests.zoo import REPRESENTATIVES

STEPS = {
    "recurrent_gemma": {"time": 5},
    "rwkv": {"time": 5},
    "jamba": {"time": 5},
    "lstm_lm": {"time": 5},
    "mamba": {"time": 5},
    "rnn_lm": {"time": 5},
    "seq2seq_rnn": {"batch": 2, "time": 5, "source_time": 6},
    "hierarchical_moe": {"batch": 2, "time": 5},
    "show_attend_tell": {"time": 5},
}
"""Recipes with loops over steps, which are written out, with the lengths that are fixed."""
FEW = ("gpt2", "mixtral")
LENGTHS = {"batch": 4, "time": 6, "source": 3, "source_time": 7, "columns": 8, "length": 2, "height": 40, "width": 56}
LOADED = """
import sys
import torch
given, wanted = torch.load(sys.argv[2])
found = torch.export.load(sys.argv[1]).module()(**given)
assert found.keys() == wanted.keys()
for name in wanted:
    torch.testing.assert_close(found[name], wanted[name], rtol=1e-4, atol=1e-5)
assert not any(name.partition(".")[0] in ("composer", "blocks") for name in sys.modules)
"""


def small(name: str, **options: Any) -> Any:
    """Return a model of the zoo at a small size."""
    return composer.load(name, TINY.get(name, {})).compile(seed=0, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in REPRESENTATIVES if name not in FEW)]
)
def test_a_program_computes_what_its_model_does(name: str, tmp_path: Path) -> None:
    """In a process that has never seen Composer, for lengths that it was not exported with; training goes on as it was."""
    model = small(name)
    trained = [parameter.requires_grad for parameter in model.parameters()]
    file = tmp_path / "model.pt2"
    fixed = STEPS.get(name, {})
    export_program(model, file, fixed)
    assert model.training and trained == [parameter.requires_grad for parameter in model.parameters()]
    given = draw(model.program, Draw({**LENGTHS, **fixed}, 5), torch.float32)
    result = model.eval()(**given)
    torch.save((given, {name: getattr(result, field) for field, name in model.module.outputs}), tmp_path / "example.pt")
    subprocess.run([sys.executable, "-c", LOADED, str(file), str(tmp_path / "example.pt")], check=True, cwd=tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["example.pt", "model.pt2"]


@pytest.mark.slow
def test_a_program_has_the_names_and_the_dtype_of_its_model(tmp_path: Path) -> None:
    """A tied parameter under each of its names, as torch has it."""
    model = small("llama3", dtype=torch.bfloat16)
    export_program(model, tmp_path / "model.pt2")
    state = torch.export.load(tmp_path / "model.pt2").state_dict
    assert {name: value.dtype for name, value in model.state_dict().items()} == {
        name: value.dtype for name, value in state.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "axis"), [("rnn_lm", "time"), ("lstm_lm", "time"), ("mamba", "time")])
def test_loops_over_steps_are_exported_for_one_length(name: str, axis: str, tmp_path: Path) -> None:
    """Which is refused unless it is asked for; what is there already stays."""
    (tmp_path / "model.pt2").write_bytes(b"kept")
    with pytest.raises(RecipeError, match=f"one length of `{axis}` alone") as error:
        export_program(small(name), tmp_path / "model.pt2")
    (found,) = error.value.diagnostics
    assert found.code == "fixed-length" and f"--at {axis}=" in found.hint and found.span.line > 1
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("model.pt2", b"kept")]


def test_an_axis_that_the_model_lacks_is_refused(tmp_path: Path) -> None:
    """And a file that cannot be written."""
    model = small("mlp_lm")
    with pytest.raises(RecipeError, match="there is no axis called `tim`"):
        export_program(model, tmp_path / "model.pt2", {"tim": 3})
    with pytest.raises(RecipeError, match="cannot be written"):
        export_program(model, tmp_path / "none" / "model.pt2")


@pytest.mark.slow
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file that it leads to is replaced."""
    (tmp_path / "real.pt2").write_bytes(b"old")
    (tmp_path / "link.pt2").symlink_to("real.pt2")
    export_program(small("mlp_lm"), tmp_path / "link.pt2")
    assert (tmp_path / "link.pt2").is_symlink() and torch.export.load(tmp_path / "real.pt2").state_dict
    assert len(list(tmp_path.iterdir())) == 2
