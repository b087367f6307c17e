"""`check`, `list`, `show`, `summary` and `expand`: what needs no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import composer
from composer.recipe import zoo_names
from tests.cli.conftest import Arco

ZOO = zoo_names()
MISTAKE = "wrong.yaml:4:9: error[unknown-block]: there is no block called `rmsnrm`"


def test_every_recipe_of_the_zoo_is_right(arco: Arco) -> None:
    """Without a warning."""
    assert arco("check", *ZOO) == (0, "".join(f"{name}: no problems found\n" for name in ZOO), "")


def test_mistakes_are_shown_with_their_line_and_a_hint(arco: Arco, wrong: Path) -> None:
    """On stdout, since they are what was asked for."""
    done = arco("check", "wrong.yaml")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[:5] == [MISTAKE, "  |", "4 |  norm: rmsnrm", "  |        ^^^^^^", "  = did you mean rmsnorm?"]


def test_concise_mistakes_have_one_line_each(arco: Arco, wrong: Path) -> None:
    """And one line that counts them."""
    done = arco("check", "wrong.yaml", "--format", "concise")
    assert done == (1, f"{MISTAKE}\n1 error\n", "")


def test_warnings_alone_are_no_failure(arco: Arco, wrong: Path) -> None:
    """Heads of three channels are slow, not wrong."""
    done = arco("check", "wrong.yaml", "--set", "graph.norm=rmsnorm", "--format", "concise")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("wrong.yaml:5:34: warning[head-size]: ") and done.out.endswith("\n1 warning\n")


def test_several_recipes_are_checked_together(arco: Arco, wrong: Path) -> None:
    """Those that are right are said so, the others reported at the end; what cannot be read counts most."""
    done = arco("check", "gpt2", "wrong.yaml", "llama3", "--format", "concise")
    assert done == (1, f"gpt2: no problems found\nllama3: no problems found\n{MISTAKE}\n1 error\n", "")
    done = arco("check", "no.yaml", "wrong.yaml", "gpt", "--format", "concise")
    assert (done.code, done.out) == (2, f"{MISTAKE}\n1 error\n")
    assert done.err.splitlines()[::2] == ["arco: no.yaml: there is no such file", "  = did you mean gpt1 or gpt2 or gpt3?"]


def test_a_mistake_in_a_setting_is_located_in_the_setting(arco: Arco) -> None:
    """Like one in a file."""
    done = arco("check", "gpt2", "--set", "n_layer=3", "--format", "concise")
    assert done.code == 1
    assert done.out.startswith("--set:1:1: error[unknown-path]: ")


def test_a_broken_rule_for_published_weights_is_located(arco: Arco, tmp_path: Path) -> None:
    """Beside what is wrong with the graph, long before any weights are loaded."""
    rules = "norm.*: {from: ln_f.*, transpsoe: true}\n      head.(weight|bias: lm_head.weight\n"
    weights = f"checkpoints:\n  gpt2:\n    rules:\n      {rules}"
    graph = 'recipe: mapped\ninputs: {x: "float[batch, time, 8]"}\ngraph: {norm: layernrm}\n'
    (tmp_path / "mapped.yaml").write_text(graph + weights, encoding="utf-8")
    done = arco("check", "mapped.yaml", "--format", "concise")
    assert done.code == 1
    assert [line.partition("]: ")[0] for line in done.out.splitlines()] == [
        "mapped.yaml:3:15: error[unknown-block",
        "mapped.yaml:7:30: error[unknown-key",
        "mapped.yaml:8:12: error[checkpoints-pattern",
        "3 errors",
    ]
    assert "transpose" in arco("check", "mapped.yaml").out


@pytest.mark.parametrize("command", ["summary", "expand", "export"])
def test_other_commands_refuse_a_wrong_recipe_with_the_same_report(command: str, arco: Arco, wrong: Path) -> None:
    """On stderr, since it is not what was asked for; nothing is written."""
    done = arco(command, "wrong.yaml")
    assert (done.code, done.out) == (1, "")
    assert done.err == arco("check", "wrong.yaml").out
    assert list(wrong.parent.iterdir()) == [wrong]


def test_what_is_no_text_is_refused(arco: Arco, tmp_path: Path) -> None:
    """A folder, a file of bytes, and a name that no file can have."""
    (tmp_path / "bytes.yaml").write_bytes(b"recipe: a\n\x80\x81")
    assert arco("check", tmp_path) == (2, "", f"arco: {tmp_path}: this is a folder, not a file\n")
    told = "bytes.yaml:2:1: error[not-utf8]: this is not UTF-8: byte 0x80\n  = save the file as UTF-8\n"
    assert arco("check", "bytes.yaml") == (2, "", told)
    assert arco("show", "bytes.yaml") == (2, "", told)
    assert arco("check", "a\0b.yaml").code == 2


def test_list_names_every_recipe(arco: Arco) -> None:
    """With the beginning of what it says about itself, in a hundred columns."""
    done = arco("list")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == ZOO
    for name, line in zip(ZOO, lines, strict=True):
        assert len(line) <= 100
        assert composer.load(name).doc.startswith(line.partition(" ")[2].strip().removesuffix(" …"))


def test_show_prints_the_text_with_what_is_set(arco: Arco) -> None:
    """Untouched where nothing is set; else a recipe of the same meaning."""
    assert arco("show", "gpt2").out == composer.load("gpt2").source.text
    shown = arco("show", "gpt2", "--set", "n_layers=3", "--set", "layers.attn.body.mask=causal and window(8)").out
    layers = composer.load(shown).program.root["layers"]
    assert len(layers.passes) == 3  # type: ignore[union-attr]  # a repeat
    assert "mask: causal and window(8)" in shown


def test_summary_measures_at_the_lengths_that_are_given(arco: Arco) -> None:
    """Twice the batch is twice the work; JSON has the same figures as the object."""
    one, two = (
        json.loads(arco("summary", "gpt_mini", "--at", "time=64", "--at", f"batch={n}", "--format", "json").out) for n in (1, 2)
    )
    assert one == json.loads(json.dumps(composer.load("gpt_mini").summary({"time": 64}).to_json()))
    assert one["lengths"] == {"batch": 1, "time": 64}
    assert two["flops"] == {kind: 2 * flops for kind, flops in one["flops"].items()}
    assert two["flops_per_token"] == one["flops_per_token"]
    assert two["cache_bytes_per_token"] == one["cache_bytes_per_token"]


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_summary_as_text_fits_a_terminal(every: int, arco: Arco) -> None:
    """A hundred columns, whatever the recipe."""
    for name in ZOO[::every]:
        done = arco("summary", name)
        assert (done.code, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= 100


def test_summary_is_cut_short_by_no_deep_tree(arco: Arco, tmp_path: Path) -> None:
    """Twelve groups inside one another: every name is there, down to the innermost."""
    inner = "ffn"
    for depth in range(12):
        inner = f"{{graph: {{n{depth}: {inner}}}}}"
    text = f'recipe: deep\ninputs: {{x: "float[batch, time, 8]"}}\ngraph:\n  outer: {inner}\n'
    (tmp_path / "deep.yaml").write_text(text, encoding="utf-8")
    out = arco("summary", "deep.yaml").out
    assert all(f"└─ n{depth} " in out for depth in range(12))


def test_commands_of_the_front_half_load_no_torch(wrong: Path) -> None:
    """All of them in one fresh interpreter, a wrong recipe among them."""
    commands = [["list"], ["show", "llama3"], ["check", "llama3", str(wrong)], ["summary", "gemma3"], ["expand", "gpt2"]]
    code = f"import sys\nfrom composer.cli import main\ncodes = [main(words) for words in {commands!r}]\n"
    code += "print(codes, {'torch', 'numpy', 'transformers', 'tokenizers'} & {*sys.modules})"
    root = Path(composer.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, encoding="utf-8")
    assert done.stdout.splitlines()[-1:] == ["[0, 0, 1, 0, 0] set()"], done.stderr
