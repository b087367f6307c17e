"""`arco inspect`: which tokens of a text attend to which, and what each layer of a model would say next."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, add_blocks, integer
from composer.cli.output import say, write_file
from composer.cli.running import add_device, open_folder, rebuild, refusals
from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from composer.decode import AttentionMap
    from composer.lower import Model

SHOWN = 3
"""Tokens that a line of text names."""


def declare(parser: Parser, name: str) -> None:
    """Declare a model, a text, and what is shown of it."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="Run folder that `arco train` wrote, or a published folder")
    parser.add_argument("--prompt", metavar="TEXT", action=StoreOnce, required=True, help="Text that the model reads")
    parser.add_argument(
        "--token",
        metavar="N",
        type=integer,
        help="Token of the text that is looked at, from 0, or from the end: -1 (default: -1)",
    )
    parser.add_argument(
        "--lens", action="store_true", help="Show what each layer would say after the token (logit lens), instead of attention"
    )
    parser.add_argument(
        "--layer", metavar="PATTERN", action=StoreOnce, help="Attention whose name matches a pattern, such as layers.3.*"
    )
    parser.add_argument(
        "--figure",
        metavar="PATH",
        action=StoreOnce,
        type=Path,
        help="Also draw the attention of all tokens into this .svg file: the mean of the heads, or with --layer each head",
    )
    parser.add_argument("--checkpoint", metavar="NAME", help="Checkpoint of the run, such as step-000500 (default: the latest)")
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("See what the last token attends to", 'arco inspect runs/gpt_mini --prompt "To be or not to be"'),
        (
            "Draw each head of a layer",
            'arco inspect bert-base-uncased --prompt "The animal was tired" --layer "layers.0.*" --figure heads.svg',
        ),
        ("See how the next token takes shape", 'arco inspect runs/gpt_mini --prompt "To be" --lens'),
    ]
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print attention or the lens, and draw attention if there is to be a figure."""
    import torch

    from composer.decode import attention_maps, logit_lens

    if arguments.figure is not None and arguments.figure.suffix != ".svg":
        raise Problem(f"arco inspect: {arguments.figure} does not end in .svg", "figures of attention are SVG files")
    for name in ("layer", "figure"):
        if arguments.lens and getattr(arguments, name) is not None:
            raise Problem(f"arco inspect: --{name} is for attention", "remove --lens")
    with refusals():
        model, ids, decode = read(arguments)
        place = -1 if arguments.token is None else arguments.token
        if not -len(ids) <= place < len(ids):
            raise Problem(f"arco inspect: there is no token {place}", f"the text has {len(ids)} tokens, 0 to {len(ids) - 1}")
        place %= len(ids)
        tokens = torch.tensor([ids], device=next(model.parameters()).device)
        names = [repr(decode([token])) for token in ids]
        if arguments.lens:
            said = [(name, logits[0, place].softmax(-1)) for name, logits in logit_lens(model, tokens=tokens)]
            say(f"after {names[place]} at {place}")
            say("\n".join(best(name, chances.tolist(), lambda token: repr(decode([token]))) for name, chances in said))
            return 0
        found = attention_maps(model, tokens=tokens)
    kept = [each for each in found if arguments.layer is None or fnmatchcase(each.name, arguments.layer)]
    if not kept:
        raise Problem(f"arco inspect: --layer: there is no attention {arguments.layer}", ", ".join(each.name for each in found))
    say(f"{names[place]} at {place} attends to")
    for each in kept:
        for head, weights in enumerate(each.weights[0, :, place].tolist()):
            say(best(f"{each.name}  head {head:>2}", weights, lambda key: f"{names[key]} at {key}"))
    if arguments.figure is not None:
        write_file(arguments.figure, figure(kept, names, each_head=arguments.layer is not None))
    return 0


def read(arguments: argparse.Namespace) -> tuple[Model, list[int], Callable[[list[int]], str]]:
    """Return a model, the tokens of the prompt, and what turns tokens into text.

    Raises:
        Problem: The model reads something else than a text alone.
    """
    from composer.lower import Model
    from composer.published.folder import is_published
    from composer.train import MarkedTokenizer, open_run

    encode: Callable[[str], list[int]]
    if is_published(arguments.trained):
        if arguments.checkpoint is not None:
            raise Problem("arco inspect: --checkpoint is for run folders", "a published folder has one set of weights")
        published = open_folder(arguments)
        model, encode, decode = published.model, published.tokenizer.encode, published.tokenizer.decode
    else:
        trained = open_run(arguments.trained, build=rebuild(arguments.blocks, arguments.device), checkpoint=arguments.checkpoint)
        assert isinstance(trained.model, Model)  # what `rebuild` compiles
        model, decode = trained.model, trained.tokenizer.decode
        tokenizer = trained.tokenizer
        encode = tokenizer.encode_marked if isinstance(tokenizer, MarkedTokenizer) else tokenizer.encode
    task = model.recipe.task or ""
    if task not in TASKS or {*TASKS[task].inputs} != {"tokens"}:
        raise Problem(
            f"arco inspect: a model of the task {task or 'none'} reads something else than a text",
            "in Python: composer.decode.attention_maps(model, …) with all its inputs",
        )
    ids = encode(arguments.prompt)
    if not ids:
        raise Problem("arco inspect: the prompt is empty", "give a text to --prompt")
    return model, ids, decode


def best(name: str, shares: Sequence[float], shown: Callable[[int], str]) -> str:
    """Return a line with the largest shares."""
    order = sorted(range(len(shares)), key=lambda index: -shares[index])[:SHOWN]
    return f"{name}  " + "  ".join(f"{shares[index]:.3f} {shown(index)}" for index in order)


def figure(maps: Sequence[AttentionMap], names: Sequence[str], *, each_head: bool) -> str:
    """Return heat maps of queries and keys as the text of an SVG file."""
    from composer.draw.export.heat_map import HeatMap, svg_of_heat_maps

    rows = [f"{name} {index}" for index, name in enumerate(names)]
    tables = [
        HeatMap(f"{each.name}{head}", "key", "query", rows, rows, weights.tolist(), upright=True)
        for each in maps
        for head, weights in (
            [(f", head {index}", head) for index, head in enumerate(each.weights[0])]
            if each_head
            else [(", mean of the heads", each.weights[0].mean(0))]
        )
    ]
    return svg_of_heat_maps(tables)
