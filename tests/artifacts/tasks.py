"""What a tree consists of: a task for each folder, by its path."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import composer
from blocks.core import standard
from composer.cli import COMMANDS, main
from composer.diagnostics import RecipeError
from composer.recipe import zoo_names
from tests.artifacts import kept, numbers
from tests.artifacts.kept import Artifacts, data
from tests.cases import case as case_files
from tests.cases.case import cases, diagnose
from tests.conformance.declared import alone, blocks, draws
from tests.conformance.generator import COUNT, generated
from tests.diff.mutations import mutations
from tests.docs.pages import PAGES, examples
from tests.docs.sessions import output
from tests.docs.test_language import recipe_text
from tests.draw.cases import FORMS, WIRED
from tests.draw.wired import mixed, ring

EVERY = 4
"""Of so many mutations of a recipe one is kept."""
PAIRS = {
    "llama3 mixtral": "page",
    "gpt2 llama3": "drawn",
    "t5 transformer": "page",
    "bert albert": "drawn",
    "gpt_mini gpt2": "drawn",
    "t5 switch": "drawn",
    "rnn_lm lstm_lm": "drawn",
    "llama3 gemma3": "drawn",
    "mlp_lm conv_lm": "drawn",
    "gpt2 bert": "text",
    "gpt2 captioner": "text",
    "vit captioner": "text",
    "lecture_block gpt_mini": "text",
    "seq2seq_rnn transformer": "text",
    "bert vit": "text",
    "lstm_lm gpt2": "text",
    "mixtral switch": "text",
    "gemma3 llama3": "text",
}
"""Recipes of the zoo that are compared: as text and data, drawn too, as a page too."""
SETTINGS = {
    "albert": {"n_layers": 7},
    "bert": {"layers.attn.body.bias": "false"},
    "captioner": {"d_image": 384},
    "conv_lm": {"kernel": 5},
    "gemma3": {"period": 2},
    "gpt2": {"layers.attn.body.mask": "full"},
    "gpt_mini": {"layers.ffn.body.activation": "silu"},
    "lecture_block": {"hidden": 64},
    "llama3": {"tied": "true"},
    "lstm_lm": {"n_layers": 1},
    "mixtral": {"top_k": 3},
    "mlp_lm": {"reach": 5},
    "rnn_lm": {"embed.trainable": "false"},
    "seq2seq_rnn": {"maxout": 250},
    "switch": {"n_experts": 4},
    "t5": {"d_model": 512},
    "transformer": {"dropout": 0},
    "vit": {"patch": 8},
}
"""One setting of each recipe of the zoo."""
MASKS = (
    "causal",
    "full",
    "causal and window(3)",
    "not window(2)",
    "causal or window(1)",
    "causal and documents(documents) --data documents=0,0,1,1,1",
    "valid(valid) --data valid=1,1,0,1",
    "causal -q 2 -k 5",
)
PRINTED = (
    "--help",
    "list",
    "blocks",
    "explain",
    "check",
    "nothing",
    "check wrong.yaml",
    "check wrong.yaml --format concise",
    "check wrong.yaml --format json",
    "check wrong.yaml --format github",
    "check gpt2 --against gpt_mini",
    "summary gpt2 --at time=512",
    "summary gpt2 --at space=512",
    "diff gpt2 gpt_mini",
    "draw gpt2 --open nowhere -o -",
    "draw gpt2 --width wide -o -",
    "train --nothing",
    "generate nowhere",
)
"""Commands in the folder of the case files' recipes, with what they say of their own mistakes."""


@dataclass(frozen=True)
class Task:
    """A folder of a tree: a function, which another process may call, and what it is given."""

    path: str
    make: Callable[..., Artifacts]
    given: tuple[Any, ...]
    folder: Path | None = None
    """Where it works; an empty folder of its own without."""


def tasks(only: tuple[str, ...], texts: Mapping[str, str] | None = None) -> list[Task]:
    """Return the tasks of some groups, or of folders in them; `texts` are the recipes, by the path of their folder, that are not
    to be drawn again.
    """
    groups = dict.fromkeys(folder.partition("/")[0] for folder in only)
    return [task for group in groups for task in GROUPS[group](texts) if within(task.path, only)]


def within(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path leads into one of some folders."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def zoo(_: object) -> Iterator[Task]:
    """Yield every recipe that comes with the package."""
    for name in zoo_names():
        yield Task(f"zoo/{name}", kept.of_zoo, (name,))


def pages(_: object) -> Iterator[Task]:
    """Yield every recipe on a page but those of the errors, which are cases; on the page on the language also graphs alone."""
    for page in (page for page in PAGES if page.stem != "errors"):
        seen: Counter[str] = Counter()
        for number, example in enumerate(examples(page)):
            whole = example.option("file") or page.stem == "language"
            if example.language == "yaml" and whole:
                name = Path(example.option("file") or "example").stem
                seen[name] += 1
                yield Task(f"pages/{page.stem}/{name}-{seen[name]:03}", of_example, (page, number))


def of_example(page: Path, number: int) -> Artifacts:
    """Return a recipe on a page, beside the files that stand above it and with the blocks of the page."""
    above = examples(page)[: number + 1]
    modules = []
    for example in above:
        if name := example.option("file"):
            Path(name).write_text(example.text, encoding="utf-8")
            modules += [name] if example.language == "python" else []
    source = above[-1].option("file") or recipe_text(above[-1])
    return kept.whole(composer.load(source, blocks=modules))


def case_tasks(_: object) -> Iterator[Task]:
    """Yield every case of the case files."""
    for file in case_files.FILES:
        seen: Counter[str] = Counter()
        for number, case in enumerate(cases(file)):
            seen[case.code] += 1
            yield Task(f"cases/{file.stem}/{case.code}-{seen[case.code]:02}", of_case, (file, number), file.parent)


def of_case(file: Path, number: int) -> Artifacts:
    """Yield what is found in a case; of one that is only doubtful, all else too."""
    case = list(cases(file))[number]
    yield "recipe.yaml", lambda: case.text
    found = diagnose(case)
    yield from kept.diagnosed(found)
    if not any(each.severity == "error" for each in found):
        yield from kept.of_sound(composer.load(case.text, overrides=case.settings), ["block"])


def forms(_: object) -> Iterator[Task]:
    """Yield architectures of well-known forms, and recipes that are wired at random."""
    for path in FORMS:
        yield Task(f"forms/{path.stem}", of_text, (path.read_text(encoding="utf-8"),), path.parent)
    for name, write in {"ring": ring, "mixed": mixed}.items():
        for seed in range(WIRED):
            yield Task(f"forms/{name}-{seed:02}", of_text, (write(seed), ("block", "full")))


def of_text(text: str, *levels: Any) -> Artifacts:
    """Return a recipe that is nowhere but here."""
    return kept.whole(composer.load(text), *levels)


def random_texts() -> dict[str, str]:
    """Return the recipes of the conformance suite, by their folders."""
    whole = {f"generated/{seed:03}": generated(seed) for seed in range(COUNT)}
    library = standard()
    parts = blocks(library)
    single = {
        f"generated/{kind}-{seed}": alone(parts[kind], library, seed) for kind in parts for seed in range(draws(parts[kind]))
    }
    return whole | single


def replayed(texts: Mapping[str, str] | None, prefix: str, made: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """Return the recipes below a folder: those of an earlier tree, or new ones."""
    return made() if texts is None else {path: text for path, text in texts.items() if path.startswith(prefix)}


def generated_tasks(texts: Mapping[str, str] | None) -> Iterator[Task]:
    """Yield the recipes that are drawn at random: graphs, and each block alone in all its ways."""
    for path, text in replayed(texts, "generated/", random_texts).items():
        levels = () if path.rpartition("/")[2].isdigit() else (("block",),)
        yield Task(path, of_text, (text, *levels))


def number_tasks(texts: Mapping[str, str] | None) -> Iterator[Task]:
    """Yield what the zoo and the random recipes compute, of each block alone every third."""
    for name in zoo_names():
        yield Task(f"numbers/zoo/{name}", numbers.of_zoo, (name,))
    for number, (path, text) in enumerate(replayed(texts, "generated/", random_texts).items()):
        name = path.rpartition("/")[2]
        if name.isdigit() or number % 3 == 0:
            yield Task(f"numbers/{path}", numbers.of_text, (text,))


def mutated_texts() -> dict[str, str]:
    """Return the recipes of the zoo with something changed, by their folders."""
    known = {name: list(mutations(composer.load(name).source.text))[::EVERY] for name in zoo_names()}
    return {f"diffs/mutated/{name}/{n:03}": text for name, found in known.items() for n, (_, text) in enumerate(found)}


def diffs(texts: Mapping[str, str] | None) -> Iterator[Task]:
    """Yield the recipes beside others, beside themselves with a setting, and beside what mutations make of them."""
    for pair, how in PAIRS.items():
        yield Task(f"diffs/{pair.replace(' ', '-')}", of_pair, (*pair.split(), how))
    for name, settings in SETTINGS.items():
        yield Task(f"diffs/set/{name}", of_setting, (name, settings))
    for path, text in replayed(texts, "diffs/mutated/", mutated_texts).items():
        yield Task(path, of_mutation, (path.split("/")[2], text))


def of_pair(before: str, after: str, how: str) -> Artifacts:
    """Yield the artifacts of two recipes of the zoo."""
    return kept.difference(composer.load(before), composer.load(after), drawn=how != "text", page=how == "page")


def of_setting(name: str, settings: Mapping[str, Any]) -> Artifacts:
    """Yield the artifacts of a recipe of the zoo with a setting: what is wrong now, and what differs."""
    changed = composer.load(name, overrides=settings)
    yield from kept.diagnosed(changed.check())
    yield from kept.difference(composer.load(name), changed)
    yield "block.svg", lambda: composer.load(name).diff(changed).draw().svg()


def of_mutation(name: str, text: str) -> Artifacts:
    """Yield the artifacts of a recipe of the zoo beside another text."""
    changed = composer.load(text)
    yield "recipe.yaml", lambda: text
    yield from kept.diagnosed(changed.check())
    try:
        _ = changed.program
    except RecipeError:
        return
    yield "difference.txt", lambda: str(composer.load(name).diff(changed))


def docs(_: object) -> Iterator[Task]:
    """Yield the outputs of commands, a folder for each family."""
    beside = case_files.FOLDER / "recipes"
    codes = sorted({case.code for file in case_files.FILES for case in cases(file)})
    yield Task("docs/help", printed, ({name: [name, "--help"] for name in COMMANDS},), beside)
    yield Task("docs/blocks", printed, ({name: ["blocks", name] for name in standard()},), beside)
    yield Task("docs/explain", printed, ({code: ["explain", code] for code in codes},), beside)
    yield Task("docs/masks", printed, ({mask: ["mask", *_words(mask)] for mask in MASKS},), beside)
    yield Task("docs/commands", printed, ({line: line.split() for line in PRINTED},), beside)
    yield Task("docs/names", of_names, ())


def _words(mask: str) -> list[str]:
    """Split the arguments of a command: a mask with blanks is one word, what follows it are others."""
    text, *options = mask.partition(" -")[0], *mask[len(mask.partition(" -")[0]) :].split()
    return [text, *options]


def printed(commands: Mapping[str, list[str]]) -> Artifacts:
    """Yield what each command prints, and the code that it ends with."""
    for name, words in commands.items():
        file = "_".join(name.split()).replace("/", "_").strip("-")
        yield f"{file}.txt", lambda words=words: said(words)


def said(words: list[str]) -> str:
    """Return what a command prints on either stream."""
    codes: list[int] = []
    text = output(lambda: codes.append(main(words)))
    return f"{text}[exit {codes}]\n"


def of_names() -> Artifacts:
    """Yield lists of names, and the schema, in which nothing depends on the order."""
    yield "blocks.json", lambda: data(list(standard()))
    yield "zoo.json", lambda: data(zoo_names())
    yield "commands.json", lambda: data(list(COMMANDS))
    yield "schema.json", lambda: json.dumps(json.loads(output(lambda: main(["schema"]))), indent=1, sort_keys=True)


GROUPS: dict[str, Callable[[Mapping[str, str] | None], Iterator[Task]]] = {
    "zoo": zoo,
    "pages": pages,
    "cases": case_tasks,
    "forms": forms,
    "generated": generated_tasks,
    "diffs": diffs,
    "numbers": number_tasks,
    "docs": docs,
}
"""What `--only` may name."""
