"""Text of strangers, in names of files, strings of recipes and values of configurations, reaches no terminal and no page raw."""

from __future__ import annotations

import ast
import base64
import gzip
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import composer
from composer.diagnostics import Diagnostic, Source, Span, as_github, as_json, full, report
from composer.printable import json_text, markup, printable, yaml_string
from composer.train import display
from tests.cli.conftest import Arco

BAD = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b5n\u202e\u2066\u200e\u2028\u2029\u0085\x7f\x00\r\x08\ufeff\U000e0041"
"""Titles of windows, cleared screens, questions to a terminal, turned directions, line ends, a delete, a null, tags."""
IN_NAMES = BAD.replace("\x00", "") + "\udcff"
"""What the name of a file may hold: no null, and bytes that are no UTF-8."""
IN_RECIPES = "\u00ad\U000e0041\u180e\ue000\U0001f468\u200d\U0001f469\u0600<b>&amp;\"'`</script><script>alert(1)</script>{{title}}"
"""What a recipe may hold though it is not visible, and what a page might take for markup."""
needs_names = pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="files cannot have such names here")


def raw(output: str | bytes) -> list[str]:
    """Return the characters of an output that are not visible, but for ends of lines, tabs, and what joins letters and emoji."""
    text = output.decode("utf-8") if isinstance(output, bytes) else output
    seen = {each for each in text if each in "\n\t\u200c\u200d" or each.isprintable() or unicodedata.category(each) == "Zs"}
    return sorted({*text} - seen)


def test_what_counts_as_raw() -> None:
    """All of the bad ones, so that a test can fail."""
    assert {*raw(BAD)} == {each for each in BAD if not each.isprintable()} and len(raw(BAD)) == 15
    assert raw("größe → ×\u00a0😀\n") == []
    for text in ("größe → ×\u00a0😀", "👩\u200d👩\u200d👧", "می\u200cخواهم"):
        assert printable(text) == text


def texts() -> Iterator[str]:
    """Yield every character there is, in texts of a few hundred, and the pairs that make one of halves apart."""
    yield from (BAD, IN_NAMES, IN_RECIPES, "", "\udc00\ud800")
    for start in range(0, sys.maxunicode + 1, 500):
        yield "".join(map(chr, range(start, min(start + 500, sys.maxunicode + 1))))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.exhaustive) for part in (1, 2, 3))])
def test_whatever_is_shown_can_be_printed(part: int) -> None:
    """And written, for all characters there are; JSON reads as before. The first part has those that are most used."""
    known = [*texts()]
    size = len(known) // 4 + 1
    for text in known[part * size : (part + 1) * size]:
        check_printed(text)


def check_printed(text: str) -> None:
    """Check all three functions with a text."""
    assert raw(printable(text)) == raw(markup(text)) == raw(json_text([text])) == []
    assert "\n" not in printable(text)
    assert printable(text, keep="\n").count("\n") == text.count("\n")
    assert json.loads(json_text({text: text})) == json.loads(json.dumps({text: text}))
    assert ElementTree.fromstring(f'<a b="{markup(text)}">{markup(text)}</a>').text == (printable(text) or None)
    (printable(text) + markup(text) + json_text(text)).encode("utf-8")


def test_a_diagnostic_of_bad_words_is_harmless_in_every_format() -> None:
    """Wherever they stand in it."""
    source = Source(f"{BAD}.yaml", f"a: b {BAD} c")
    span = Span(source, 1, 1, 1, 3)
    found = Diagnostic(f"code{BAD}", f"message{BAD}", span, note=BAD, hint=f"hint{BAD}")
    for text in (full(found), report([found]), as_json([found]), as_github(found), str(composer.RecipeError([found]))):
        assert raw(text) == []
    assert as_github(found).count("\n") == 0
    assert json.loads(as_json([found]))[0]["message"] == f"message{BAD}"


def test_a_message_that_quotes_a_huge_value_is_short() -> None:
    """A text of megabytes in a recipe or a configuration is not printed back."""
    source = Source("a.yaml", "a: b")
    found = Diagnostic("code", "x" * 10**6, Span(source, 1, 1, 1, 2), hint="y" * 10**6)
    for text in (full(found), report([found]), str(composer.RecipeError([found]))):
        assert len(text) < 10_000 and "x…" in text and "y…" in text


RECIPE = """recipe: evil
doc: {text}
paper: {text}
task: causal_lm
params: {{vocab: 61, d: 16}}
inputs: {{tokens: {{type: "int[batch, time]", doc: {text}}}}}
graph:
  embed: {{type: embedding, vocab: vocab, dim: d}}
  attn: {{type: residual, norm: rmsnorm, body: {{type: attention, heads: 2, mask: causal}}}}
  head: {{type: linear, out: vocab}}
outputs: {{logits: head}}
"""


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound recipe under a bad name, with bad strings in it, that extends another one with a bad name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"base{IN_NAMES}.yaml").write_text("recipe: base\n", encoding="utf-8")
    file = tmp_path / f"evil{IN_NAMES}.yaml"
    file.write_text(RECIPE.format(text=yaml_string(IN_RECIPES)), encoding="utf-8")
    return file


FORMATS = ["svg", "html", "dot", "mermaid"]


@needs_names
@pytest.mark.slow
def test_no_command_prints_a_bad_name_or_string(arco: Arco, evil: Path, tmp_path: Path) -> None:
    """Each command, each format, to standard output and to files; and the command still does what it should."""
    commands: list[tuple[object, ...]] = [
        *(("check", evil, "--format", form) for form in ("full", "concise", "json", "github")),
        *(("draw", evil, "--format", form, "-o", "-", "--level", level) for form in FORMATS for level in ("overview", "full")),
        *(("diff", evil, "gpt_mini", "--format", form, "-o", "-") for form in ("text", "json", "svg", "html")),
        *(("summary", evil, "--format", form) for form in ("text", "json")),
        *((name, evil) for name in ("show", "expand", "export")),
        ("check", evil, "--against", "gpt_mini", "--format", "full"),
        ("expand", evil, "-o", tmp_path / f"out{IN_NAMES}.yaml"),
        ("draw", evil, "-o", tmp_path / f"out{IN_NAMES}.svg", "--title", IN_RECIPES),
        ("diff", evil, "gpt_mini", "-o", tmp_path / f"out{IN_NAMES}.html"),
    ]
    for words in commands:
        done = arco(*words)
        assert raw(done.out) == raw(done.err) == [], words
        assert done.code == (1 if words[0] == "diff" else 0), (words, done.err)
    assert raw((tmp_path / f"out{IN_NAMES}.svg").read_bytes()) == raw((tmp_path / f"out{IN_NAMES}.html").read_bytes()) == []


@needs_names
@pytest.mark.slow
def test_no_refusal_prints_a_bad_name_or_string(arco: Arco, evil: Path, tmp_path: Path) -> None:
    """Files that are missing or wrong, words that no command takes, and keys, values and types of a configuration."""
    wrong = tmp_path / f"wrong{IN_NAMES}.yaml"
    wrong.write_bytes(f"recipe: {BAD}\n{BAD}: x\ngraph: {{a: {BAD}}}\n".encode())
    config = {"model_type": "gpt2", "n_layer": 2, BAD: BAD, "activation_function": BAD, "n_embd": [BAD], "n_head": BAD}
    folder = tmp_path / f"folder{IN_NAMES}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
    (tmp_path / "kind.json").write_text(json.dumps({"model_type": BAD}), encoding="utf-8")
    (tmp_path / "cut.json").write_text('{"model_type": "' + BAD, encoding="utf-8")
    link = tmp_path / "extends.yaml"
    link.write_text(f"recipe: x\nextends: {json.dumps('base' + IN_RECIPES + '.yaml')}\n", encoding="utf-8")
    missing = tmp_path / f"no{IN_NAMES}.yaml"
    commands: list[tuple[object, ...]] = [
        *(("check", wrong, "--format", form) for form in ("full", "concise", "json", "github")),
        *((name, missing) for name in ("check", "show", "expand", "export", "summary", "draw")),
        *((name, wrong) for name in ("show", "expand", "export", "summary", "draw")),
        *(("import", each) for each in (folder, folder / "config.json", "kind.json", "cut.json", missing)),
        *(("import", folder, "--format", form, "--recipe", "gpt2") for form in ("recipe", "options")),
        *(
            ("diff", evil, wrong),
            ("diff", wrong, missing),
            ("check", evil, "--against", missing),
            ("check", evil, "--against", wrong),
        ),
        *(("check", evil, "--set", f"{word}={word}") for word in (BAD, "d")),
        *(("check", evil, f"--{BAD}"), ("check", evil, "--format", BAD), ("explain", BAD), ("blocks", BAD), (BAD,), (f"-{BAD}",)),
        *(("mask", BAD), ("summary", evil, "--at", f"{BAD}=1"), ("check", evil, "--against", BAD), ("check", link)),
        *(("train", evil, "--data", missing), ("train", evil, "--data", wrong, "--run", folder), ("generate", folder)),
        *(("train", "--resume", folder), ("generate", missing, "--prompt", BAD), ("check", evil, "--blocks", missing)),
        *(("draw", evil, "-o", folder), ("draw", evil, "--open", BAD), ("draw", evil, "--highlight", BAD)),
        *(("expand", evil, "-o", folder / BAD.replace("\x00", "") / "x"), ("draw", evil, "--width", BAD)),
    ]
    for words in commands:
        done = arco(*words)
        assert raw(done.out) == raw(done.err) == [], words
        assert done.code in (1, 2) or words[0] == "show", (words, done)
        assert "Traceback" not in done.err


@needs_names
def test_what_is_written_to_a_file_is_the_text_itself(arco: Arco, evil: Path, tmp_path: Path) -> None:
    """A recipe that is written is read as the same one, with every character of its strings."""
    for command in ("expand", "show"):
        assert arco(command, evil, "-o", tmp_path / "written.yaml").code == 0
        assert composer.load(tmp_path / "written.yaml").doc == composer.load(evil).doc
    assert raw(arco("expand", evil).out) == []
    assert yaml.safe_load(arco("expand", evil).out)["paper"] == IN_RECIPES


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_the_display_of_a_training_shows_no_bad_name() -> None:
    """Neither as a bar nor in lines."""
    from rich.console import Console

    for forced in (False, True):
        stream = io.StringIO()
        with display(Console(file=stream, force_terminal=forced, color_system=None, width=300)) as shown:
            shown.note(f"saved in {BAD}")
        assert "\\x1b]0;owned\\x07" in stream.getvalue() and "\u202e" not in stream.getvalue()
        assert "\x1b]0;" not in stream.getvalue()


def test_text_that_a_model_generates_cannot_drive_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or a pipe gets it as it is."""
    from composer.cli.output import generated

    assert generated(BAD + "größe\n\t", io.StringIO()) == BAD + "größe\n\t"
    assert raw(generated(BAD + "größe\n", Terminal())) == []
    assert generated("größe\n\t", Terminal()) == "größe\n\t"


# -- pages


def embedded(page: str) -> Iterator[str]:
    """Yield the data of a page: what its script reads, and the pictures that are packed in it."""
    for found in re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL):
        yield found
        for packed in re.findall(r'"(H4sI[A-Za-z0-9+/=]+)"', found):
            yield gzip.decompress(base64.b64decode(packed)).decode("utf-8")


MARKS = ("<script>alert", "</script><script", "<b>", "onerror=", "javascript:")


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>.yaml", "javascript:alert(1).yaml", "a</script><script>alert(1).yaml"]
)
@pytest.mark.skipif(os.name == "nt", reason="files cannot have such names on Windows")
def test_nothing_of_a_recipe_becomes_markup(tmp_path: Path, name: str) -> None:
    """Neither of its strings nor of the names of its files, in a figure, a page, and a page of differences."""
    name = name.replace("/", "\u2215") if "</" in name else name
    text = RECIPE.format(text=json.dumps("</script><script>alert(1)</script><b>\"' onerror=x javascript:alert(1) {{script}}"))
    (tmp_path / name).write_text(text, encoding="utf-8")
    recipe = composer.load(tmp_path / name)
    other = composer.load("gpt_mini")
    clean = composer.load(RECIPE.format(text="clean"))
    for made, usual in (
        (recipe.draw().html(), clean.draw().html()),
        (recipe.draw().svg(), clean.draw().svg()),
        (recipe.diff(other).draw().html(), clean.diff(other).draw().html()),
    ):
        assert tags(made) == tags(usual)
        for data in embedded(made):
            assert "</script" not in data.lower() or data.startswith("{") is False


def tags(page: str) -> dict[str, int]:
    """Return how often each element with each attribute stands in a page, lines of recipes left out."""
    from html.parser import HTMLParser

    found: dict[str, int] = {}

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            key = " ".join([tag, *(name for name, _ in attributes)])
            if tag != "li":
                found[key] = found.get(key, 0) + 1
            assert not any(name.startswith("on") for name, _ in attributes)
            assert not {"href", "src", "action", "xlink:href", "srcdoc"} & {name for name, _ in attributes}

    Reader().feed(page)
    return found


@pytest.mark.parametrize("page", ["draw", "diff"])
def test_a_page_runs_nothing_but_its_own_script_and_loads_nothing(page: str) -> None:
    """By its policy: one script, by its digest; no network, no frames, no forms, no other base."""
    import hashlib

    gpt = composer.load("gpt_mini")
    text = gpt.draw().html() if page == "draw" else gpt.diff(composer.load("gpt2")).draw().html()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert text.index("Content-Security-Policy") < text.index("<script") and text.index("Content-Security-Policy") < text.index(
        "<style"
    )
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digests = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts]
    assert rules["script-src"] == digests and len(digests) == 1
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == ["'none'"]
    assert not re.search(r"<[a-z][^>]* on[a-z]+=", text)


# -- by construction


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield every call."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_text_is_escaped_in_one_place() -> None:
    """No other file escapes HTML, or writes JSON with letters as they are, for people or pages."""
    root = Path(composer.__file__).parent
    for file in root.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if file.name != "printable.py":
            assert "from html import" not in text and "unicode_escape" not in text, file
            own = file.relative_to(root).parts[0] in {"train"}  # files of a run, which no one is shown
            assert own or "ensure_ascii=False" not in text, file


def test_a_command_prints_names_and_words_through_one_function() -> None:
    """A bare `print` takes text that is painted, which is escaped where it is made, or that has no words of others in it."""
    allowed = {
        *("arguments.tell", "output.say", "check.check", "diff.diff", "verify.verify"),  # they escape what they paint
        "compare.tell",  # escaped, to standard error
        *(
            "__init__._run",
            "__init__._print_help",
            "__init__._print_overview",
            "completion.run",
            "train.first_words",
        ),  # our own words
        *("reference.show", "reference.explain", "recipes.list_zoo", "mask.mask"),  # of blocks that were trusted to run
        *("demo", "demo_models"),  # our own recipes
        *(
            "generate.write",
            "generate.write_best",
            "generate.write_filled",
            "generate.write_all",
            "transcribe.run",
        ),  # through `generated`
        *("vocabulary.sized", "vocabulary.with_blank", "generate.run", "generate.tell"),  # numbers
        "cost.device_of",  # one of four names
        *(
            "generate.write_next",
            "train.warn",
            "voices.tell_defaults",
            "draw.tell_closed",
            "draw.tell_inside",
            "draw.tell_large",
            "draw.tell_undetailed",
            "published.write_folder",
        ),  # through `printable`
        "prompt_caches.tell_found",  # numbers
    }
    found = set()
    for file in (Path(composer.__file__).parent / "cli").rglob("*.py"):
        for function in (node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)):
            if any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls(function)):
                found.add(file.stem if file.stem in allowed else f"{file.stem}.{function.name}")
    assert found - allowed == set()
