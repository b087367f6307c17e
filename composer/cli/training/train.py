"""`arco train`: train a recipe on a text, in a run folder."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.cli.arguments import Parser, Problem, StoreOnce, add_changes, add_recipe, integer, number, sound_recipe
from composer.cli.color import painter
from composer.cli.output import say
from composer.cli.running import add_cache, add_device, chosen_device, rebuild, refusals
from composer.cli.training.following import add_following, announcement, callbacks_of, check_alone
from composer.cli.training.sources import with_weights
from composer.cli.training.vocabulary import is_published_start, is_trained, sized, tokenizer_of, with_blank, with_marks
from composer.language.tasks import TASKS
from composer.printable import printable
from composer.train.data.tokenizer_kinds import SIZED, TOKENIZER_KINDS
from composer.train.objective_kinds import AUTO, check_objective

if TYPE_CHECKING:
    from composer.lower.model import Model
    from composer.recipe import Recipe
    from composer.train import Callback, ExampleData, ReferenceModel, Result, TextData, Tokenizer, TrainSettings

RUNS = Path("runs")
LARGE_STEP = 2**16
"""Tokens in a forward pass above which a laptop is slow and may run out of memory."""
FEW_WINDOWS = 4
"""Disjoint windows in the text below which batches are nearly the same."""


def option_of(setting: str) -> str:
    """Return the option that gives a setting."""
    return f"--{setting.replace('_', '-')}"


def declare(parser: Parser, name: str) -> None:
    """Declare the recipe, the data, the run folder and every field of `TrainSettings`."""
    from composer.train import TrainSettings
    from composer.train.settings import CHOICES, MAX_DATA_BYTES, WHOLE

    parser.usage = "arco train [OPTIONS] RECIPE --data FILE\narco train [OPTIONS] --resume RUN"
    add_recipe(parser, nargs="?")
    data = parser.add_argument_group("Data")
    data.add_argument(
        "--data",
        metavar="FILE",
        action="append",
        type=Path,
        help="UTF-8 text to train on, also .gz or .zst; a folder of texts or a pattern in quotes; may be repeated, and with "
        "weights, such as a.txt=0.7 and b.txt=0.3, each gives that share of what is drawn. "
        "The last tenth of each file is held out for validation. Or a folder that `arco data prepare` wrote. Or a table (.csv, "
        ".tsv, .jsonl, .parquet, .npz, IDX, a folder that `datasets` saved, a folder with a folder of images for each class), "
        "of which every tenth row is held out",
    )
    data.add_argument(
        "--column",
        metavar="NAME=COLUMN",
        action="append",
        dest="columns",
        help="Column of a table for an input or a target of the recipe, if it has another name; a pattern such as x=f* takes "
        "several (repeatable)",
    )
    data.add_argument(
        "--max-data-bytes",
        metavar="N",
        type=integer,
        default=MAX_DATA_BYTES,
        help="Largest size of all texts that are read, decompressed",
    )
    add_cache(data)
    data.add_argument(
        "--tokenizer",
        metavar="NAME",
        help=f"How text becomes tokens: {', '.join(TOKENIZER_KINDS)}, or a published folder, for its tokenizer "
        "(default: characters)",
    )
    sizes = ", ".join(f"{name} (default: {TOKENIZER_KINDS[name].size})" for name in SIZED)
    data.add_argument("--vocab-size", metavar="N", type=integer, help=f"Vocabulary size of {sizes}")
    run_folder = parser.add_argument_group("Run folder")
    run_folder.add_argument(
        "--run", metavar="RUN", action=StoreOnce, type=Path, dest="folder", help="Run folder to write (default: runs/NAME)"
    )
    run_folder.add_argument("--resume", metavar="RUN", action=StoreOnce, type=Path, help="Resume the training of this run folder")
    run_folder.add_argument(
        "--init",
        metavar="RUN",
        action=StoreOnce,
        type=Path,
        help="Start from the weights of this run or published folder, as far as they fit, with its tokenizer unless "
        "--tokenizer is given (default: the published folder, if one is trained); without RECIPE, its recipe is trained",
    )
    run_folder.add_argument(
        "--grow",
        action="store_true",
        help="With --init: RECIPE is a larger model of the same architecture, which starts with equal outputs: more layers, "
        "hidden units, heads, experts, a multiple of the width",
    )
    run_folder.add_argument(
        "--new-layers",
        metavar="PATTERN",
        action="append",
        help="With --grow: which layers of RECIPE are new, such as layers.0 or 'layers.[13]' (repeatable; default: the last)",
    )
    run_folder.add_argument(
        "--teacher",
        metavar="RUN",
        action=StoreOnce,
        type=Path,
        help="Also learn the probabilities of this run or published folder (distillation), with its tokenizer unless --tokenizer "
        "or --init is given",
    )
    run_folder.add_argument(
        "--reference",
        metavar="RUN",
        action=StoreOnce,
        type=Path,
        help="With --objective dpo: the run or published folder that the model is compared with (default: that of --init); with "
        "--resume: where the reference or teacher of the run is now",
    )
    run_folder.add_argument(
        "--vectors",
        metavar="FILE",
        action=StoreOnce,
        type=Path,
        help="Start the embeddings of tokens from the vectors of words in this text file, as of GloVe or word2vec, also .gz; "
        "--freeze leaves them as they are",
    )
    run_folder.add_argument(
        "--checkpoint",
        metavar="NAME",
        action=StoreOnce,
        help="With --resume: the checkpoint to go back to, such as step-000500; with --init: the one to start from "
        "(default: the latest)",
    )
    settings = parser.add_argument_group("Training")
    docs = setting_docs(TrainSettings)
    for field in fields(TrainSettings):
        help = f"{docs[field.name]} (default: {field.default})"
        if field.default is None:
            help = docs[field.name].replace("; None is ", " (default: ") + ")"
        if field.name == "columns":
            continue
        if field.name in ("freeze", "recompute", "mup"):
            metavar = "PATH=VALUE" if field.name == "mup" else "PATTERN"
            help = f"{docs[field.name]} (repeatable)"
            settings.add_argument(option_of(field.name), metavar=metavar, action="append", help=help)
            continue
        if field.name in CHOICES:
            settings.add_argument(option_of(field.name), choices=tuple(CHOICES[field.name]), help=help)
            continue
        whole = field.name in WHOLE or isinstance(field.default, int)
        settings.add_argument(
            option_of(field.name),
            dest=field.name,
            metavar="N" if whole else "X",
            type=integer if whole else number,
            help=help,
        )
    add_following(parser.add_argument_group("Following"))
    add_changes(parser)
    add_device(parser)
    parser.examples = [
        ("Train a small GPT on the characters of a text", "arco train gpt_mini --data input.txt"),
        (
            "Choose the sizes and the schedule",
            "arco train gpt_mini --set n_layers=2 --data input.txt --steps 500 "
            "--batch-size 16 --learning-rate 0.003 --run runs/small",
        ),
        ("Train a byte-pair encoding (BPE) first", "arco train gpt_mini --data input.txt --tokenizer bpe --vocab-size 300"),
        (
            "Train a model of more layers, the first and the last new, that starts with the outputs of a smaller one",
            "arco train gpt_mini --set n_layers=6 --init runs/small --grow --new-layers 'layers.[05]' --data input.txt",
        ),
        ("Train a published model further", "arco train SmolLM2-135M-Instruct --data input.txt --learning-rate 2e-5"),
        (
            "Watch the gradient of each layer, also in TensorBoard",
            "arco train gpt_mini --data input.txt --watch gradients --log tensorboard",
        ),
        (
            "Learn from preferences (DPO)",
            "arco train --init runs/small --data pairs.jsonl --objective dpo --learning-rate 1e-5 --run runs/tuned",
        ),
        (
            "Learn from a larger model too (distillation)",
            "arco train gpt_mini --set n_layers=2 --data input.txt --teacher runs/large",
        ),
        (
            "Forecast a column of a table from its past",
            "arco train nlinear.yaml --data load.csv --objective forecast --column past=load",
        ),
        ("Resume a run up to step 1000", "arco train --resume runs/small --steps 1000"),
    ]
    parser.notes = (
        "A run folder holds the recipe, the settings, the tokenizer, the metrics and the checkpoints, with a manifest of their "
        "checksums. One process at a time trains in it."
    )
    parser.set_defaults(run=run)


def setting_docs(settings: type[TrainSettings]) -> dict[str, str]:
    """Return the docstring of each setting, without its full stop."""
    lines = inspect.getsource(settings).splitlines()
    pairs = list(pairwise(lines))
    return {
        line.partition(":")[0].strip(): below.strip().strip('"').rstrip(".")
        for line, below in pairs
        if below.strip().startswith('"""')
    }


def run(arguments: argparse.Namespace) -> int:
    """Start a run, or resume one."""
    check_alone()
    with refusals(), first_words():
        arguments.data, arguments.weights = (None, ()) if arguments.data is None else with_weights(arguments.data)
        if arguments.resume is not None:
            if arguments.weights:
                raise Problem("arco train: a resumed run keeps the weights of its data", "name the paths alone")
            if arguments.recipe is not None or arguments.folder is not None:
                raise Problem("arco train: a resumed run keeps its recipe and its folder", "remove RECIPE and --run, or --resume")
            if arguments.teacher is not None:
                raise Problem("arco train: a resumed run keeps its teacher", "if it has moved, say where it is: --reference RUN")
            if arguments.vectors is not None:
                raise Problem("arco train: a resumed run starts from its own checkpoint", "remove --vectors, or --resume")
            if arguments.init is not None or arguments.grow or arguments.new_layers:
                option = "--init" if arguments.init is not None else "--grow" if arguments.grow else "--new-layers"
                raise Problem("arco train: a resumed run starts from its own checkpoint", f"remove {option}, or --resume")
            result = resumed(arguments)
        elif arguments.new_layers and not arguments.grow:
            raise Problem("arco train: --new-layers only works with --grow", "arco train RECIPE --init RUN --grow --data FILE")
        elif arguments.checkpoint is not None and arguments.init is None:
            raise Problem("arco train: --checkpoint only works with --resume and --init", "a new run starts at its first step")
        elif arguments.grow and (arguments.recipe is None or arguments.init is None):
            missing = "RECIPE" if arguments.recipe is None else "--init"
            raise Problem(f"arco train: --grow needs {missing}", "arco train RECIPE --init RUN --grow --data FILE")
        elif (arguments.recipe is None and arguments.init is None) or arguments.data is None:
            missing = "RECIPE" if arguments.recipe is None and arguments.init is None else "--data"
            raise Problem(f"arco train: {missing} is missing", "arco train RECIPE --data FILE, or arco train --resume RUN")
        else:
            result = started(arguments)
    say(ending(result))
    return 0


@contextmanager
def first_words() -> Iterator[None]:
    """Tell that a command ended before its run began; a run that has begun tells how it goes on."""
    from composer.train import Interrupted

    try:
        yield
    except KeyboardInterrupt as error:
        if not isinstance(error, Interrupted) and not hasattr(error, "__notes__"):
            print("arco train: stopped before the first step", file=sys.stderr)
        raise


def started(arguments: argparse.Namespace) -> Result:
    """Train a recipe in a new run folder; the folder, settings, recipe and device are judged before the text is read."""
    from composer.published import tokenizer_to_train
    from composer.published.folder import is_published
    from composer.train import TrainSettings, is_table, learnable, objective_of, read_documents
    from composer.train.data.mixtures import weighed
    from composer.train.data.objectives import TEXT_OBJECTIVES, Translation, check_mixture
    from composer.train.run.folder import new_folder
    from composer.train.run.reader import read_run

    if arguments.folder is not None:
        new_folder(arguments.folder)
    check_tokenizer(arguments)
    chosen = settings_of(arguments, TrainSettings())
    check_second(arguments)
    callbacks = callbacks_of(arguments)
    recipe = sound_recipe(arguments.recipe or recipe_of(arguments.init), arguments)
    arguments.init = arguments.init or recipe.published
    if arguments.init is not None and is_published(arguments.init):
        if arguments.checkpoint is not None:
            raise Problem("arco train: --checkpoint is for run folders", f"{arguments.init} is a published folder")
        initial: Tokenizer | None = tokenizer_to_train(arguments.init) if arguments.tokenizer is None else None
    else:
        initial = None if arguments.init is None else read_run(arguments.init).tokenizer
    reference = second_model(arguments)
    if initial is None and reference is not None and arguments.tokenizer is None:
        initial = reference.tokenizer
    if any(is_table(source, pairs=recipe.task == "seq2seq_lm") for source in arguments.data):
        return started_on_table(arguments, recipe, initial, reference, callbacks)
    if arguments.columns:
        raise Problem("arco train: --column only works with tables", "a text has no columns")
    task = recipe.task if chosen.objective in TEXT_OBJECTIVES else learnable(recipe.task)
    check_objective(chosen.objective, task, table=False, end_tokens=chosen.end_tokens)
    folder = new_folder(arguments.folder or free_folder(recipe.name)).path
    device = chosen_device(arguments.device)
    tokenizer, data = text_of(arguments, recipe, task, initial, chosen)
    recipe = sized(recipe, tokenizer, kept=is_published_start(arguments), trained=is_trained(recipe, arguments))
    settings = settings_of(arguments, TrainSettings(seq_len=context_of(recipe, TrainSettings().seq_len)))
    objective = objective_of(task, tokenizer, settings, program=recipe.program)
    if data is None:
        documents = read_documents(arguments.data, max_bytes=arguments.max_data_bytes)
        check_mixture(objective, arguments.weights)
        data = weighed(objective.tokenize(documents, path=arguments.data), arguments.weights, documents, arguments.data)
        if isinstance(objective, Translation):
            count, of = objective.left_out(documents, data)
            warn_lengths(count, f"{of:,} pairs", settings, "left out")
    window = settings.seq_len + (task == "causal_lm")  # the targets are one token further
    doubts = [left_out(data, window)] if objective.windows else []
    if objective.windows and arguments.seq_len is None:
        doubts.append(long_context(settings, len(data.train)))
    for doubt in filter(None, doubts):
        warn(doubt)
    start = start_of(arguments, recipe)
    return trained(recipe, tokenizer, data, settings, folder, device, **start, reference=reference, callbacks=callbacks)


def text_of(
    arguments: argparse.Namespace, recipe: Recipe, task: str | None, initial: Tokenizer | None, chosen: TrainSettings
) -> tuple[Tokenizer, TextData | None]:
    """Return the tokenizer that an objective needs, and the text of `--data` as tokens where it reads these as they are."""
    from composer.train import is_prepared, make_tokenizer, read_documents
    from composer.train.data.ended import learned_from
    from composer.train.data.objectives import reads_pairs, text_task, whole_text
    from composer.train.data.prepared.joined import same_tokenizer
    from composer.train.data.prepared.prepare import open_together, scanned
    from composer.train.data.prepared.preparing import preparing
    from composer.train.data.prepared.text_cache import cache_of

    marks = text_task(task, chosen).marks
    pairs = reads_pairs(task, chosen)
    plain = not pairs and chosen.end_tokens == "none"
    if any(map(is_prepared, arguments.data)):
        folder = next(filter(is_prepared, arguments.data))
        if pairs:
            raise Problem(f"arco train: {folder} is a prepared text, not one of pairs", "name the file of pairs")
        if not plain:
            raise Problem(f"arco train: {folder} is a prepared text, in which no ends are marked", "name the text")
        if arguments.tokenizer is not None:
            raise Problem("arco train: --tokenizer does not work with a prepared text", f"{folder} has a tokenizer already")
        found = open_together(arguments.data, cache=arguments.cache, weights=arguments.weights)
        if initial is not None and not same_tokenizer(found.tokenizer, initial):
            raise Problem(
                f"arco train: {folder} was prepared with another tokenizer than that of {arguments.init or arguments.teacher}",
                f"prepare it with --tokenizer {arguments.init or arguments.teacher}, or name the text",
            )
        return with_marks(found.tokenizer, marks, arguments, initial, recipe), found.data
    if plain:
        with preparing() as show:
            limit, cache = arguments.max_data_bytes, cache_of(arguments.cache)
            texts = scanned(arguments.data, max_bytes=limit, cache=cache, show=show)
            tokenizer = with_marks(tokenizer_of(texts.tokenizer, arguments, initial), marks, arguments, initial, recipe)
            data = texts.tokens(tokenizer, arguments.weights)
        warn_returns(tokenizer, "\r" in texts.scan.alphabet, arguments.data)
        return tokenizer, data
    documents = read_documents(arguments.data, max_bytes=arguments.max_data_bytes)
    text = whole_text(task, documents, chosen)

    def make(name: str, size: int | None) -> Tokenizer:
        return make_tokenizer(name, learned_from(name, text, ends=chosen.end_tokens), size=size)

    made = tokenizer_of(make, arguments, initial)
    warn_returns(made, "\r" in text, arguments.data)
    return with_marks(made, marks, arguments, initial, recipe), None


def warn_returns(tokenizer: Tokenizer, returns: bool, sources: Sequence[Path]) -> None:
    """Print a warning if a text has carriage returns and they become tokens."""
    if returns and tokenizer.encode("\r"):
        named = str(sources[0]) if len(sources) == 1 else "the text"
        warn(
            f"{named} has carriage returns (\\r), which end lines on Windows, and they are learned like any other character; "
            "`tr -d '\\r'` removes them"
        )


def started_on_table(
    arguments: argparse.Namespace,
    recipe: Recipe,
    initial: Tokenizer | None,
    reference: ReferenceModel | None,
    callbacks: Sequence[Callback],
) -> Result:
    """Train a recipe on the rows of a table in a new run folder."""
    from composer.train import ByteTokenizer, TrainSettings, fitted, make_tokenizer, mixed, read_table
    from composer.train.data.forecasting.windows import FORECAST, fitted_series
    from composer.train.data.preferences import PREFERENCES, examples_for, marks_for, text_for
    from composer.train.run.folder import new_folder

    objective = arguments.objective or AUTO
    check_objective(objective, recipe.task, table=True, end_tokens=arguments.end_tokens or "none")
    folder = new_folder(arguments.folder or free_folder(recipe.name)).path
    device = chosen_device(arguments.device)
    columns = tuple(arguments.columns or ())
    table = read_table(arguments.data, max_bytes=arguments.max_data_bytes)
    text = text_for(objective, table, recipe.program, columns)
    tokenizer: Tokenizer = ByteTokenizer()
    if text:
        tokenizer = tokenizer_of(lambda name, size: make_tokenizer(name, text, size=size), arguments, initial)
        tokenizer = with_marks(tokenizer, marks_for(objective, recipe.program), arguments, initial, recipe)
        recipe = sized(recipe, tokenizer, kept=is_published_start(arguments), trained=is_trained(recipe, arguments))
        recipe = with_blank(recipe, tokenizer)
    elif arguments.tokenizer is not None:
        raise Problem("arco train: --tokenizer only works with texts", "no column of this table is read as a text")
    before = recipe.program.untyped.params
    if objective == FORECAST:
        recipe = fitted_series(recipe, table, columns=columns)
    elif objective not in PREFERENCES:
        recipe = fitted(recipe, table, columns=columns)
    for name, value in recipe.program.untyped.params.items():
        if before.get(name) != value:
            say(f"{name} is set to {[*value] if isinstance(value, tuple) else value}, which fits {table.name}")
    settings = settings_of(arguments, TrainSettings(seq_len=context_of(recipe, TrainSettings().seq_len)))
    data = examples_for(
        objective,
        table,
        recipe.program,
        tokenizer,
        columns=columns,
        seq_len=settings.seq_len,
        sample_rate=settings.sample_rate,
    )
    data = mixed(data, arguments.weights) if arguments.weights else data
    for count, what in ((data.left_out, "left out"), (data.cut, "cut")):
        warn_lengths(count, f"{len(table):,} rows", settings, what)
    if data.too_short:
        where = f"{len(data.too_short):,} of {len(table):,} rows have fewer frames than their transcripts need"
        warn(f"{where} and are left out, the first at {data.too_short[0]}")
    if data.series is not None:
        of_rows = f"windows of {data.series.context:,} rows and the next {data.series.horizon:,}"
        say(f"{len(data.train):,} {of_rows} to train on, {len(data.validation):,} held out")
    for name, labels in data.labels.items():
        shown = ", ".join(labels[:8]) + (", …" if len(labels) > 8 else "")
        say(f"`{name}`: {len(labels)} class{'es' * (len(labels) != 1)}, {shown}")
    start = start_of(arguments, recipe)
    return trained(recipe, tokenizer, data, settings, folder, device, **start, reference=reference, callbacks=callbacks)


def warn_lengths(count: int, of: str, settings: TrainSettings, what: str) -> None:
    """Print a warning if there are texts with more tokens than a sequence has."""
    if count:
        warn(f"{count:,} of {of} have more than {settings.seq_len} tokens and are {what}; --seq-len sets another length")


def check_second(arguments: argparse.Namespace) -> None:
    """Raise `Problem` if options of a second model do not fit together."""
    tuned = arguments.objective == "dpo"
    if tuned and arguments.teacher is not None:
        raise Problem("arco train: dpo learns from preferences and reads no teacher", "remove --teacher")
    if not tuned and arguments.reference is not None:
        raise Problem("arco train: --reference only works with --objective dpo", "a model to learn from is a --teacher")
    if arguments.teacher is None:
        for setting in ("distillation_weight", "distillation_temperature"):
            if getattr(arguments, setting) is not None:
                raise Problem(f"arco train: {option_of(setting)} only works with --teacher", "name a model to learn from")


def recipe_of(init: Path) -> str:
    """Return the recipe of the run or the published folder that is trained further."""
    from composer.published.folder import is_published
    from composer.train.run.reader import read_run

    if is_published(init):
        return str(init)
    saved = read_run(init)
    saved.recipe  # noqa: B018  # it is compared with its checksum
    return str(saved.folder.recipe)


def second_model(arguments: argparse.Namespace) -> ReferenceModel | None:
    """Return the model that is read beside the one that is trained: a teacher, or the reference of dpo."""
    from composer.train import open_reference_model

    path, checkpoint = arguments.teacher, None
    if arguments.objective == "dpo":
        path = arguments.reference or arguments.init
        if path is None:
            raise Problem("arco train: dpo tunes a model that can answer already, and there is none", "name it: --init RUN")
        checkpoint = arguments.checkpoint if path == arguments.init else None
    if path is None:
        return None
    return open_reference_model(path, build=rebuild(arguments.blocks, arguments.device), checkpoint=checkpoint)


def warn(doubt: str) -> None:
    """Print a warning."""
    print(f"{painter(sys.stderr)('warning:', 'warning')} {printable(doubt)}", file=sys.stderr)


def check_tokenizer(arguments: argparse.Namespace) -> None:
    """Raise `Problem` if an option does not work with the chosen tokenizer."""
    if arguments.vocab_size is not None and arguments.tokenizer not in SIZED:
        raise Problem(
            f"arco train: --vocab-size only works with --tokenizer {' or '.join(SIZED)}",
            "the other tokenizers determine their vocabulary themselves",
        )
    if arguments.tokenizer not in (None, *TOKENIZER_KINDS):
        from composer.published.folder import is_published

        if not is_published(Path(arguments.tokenizer)):
            hint = f"one of {', '.join(TOKENIZER_KINDS)}, or a published folder"
            raise Problem(f"arco train: there is no tokenizer {arguments.tokenizer}", hint)


def trained(
    recipe: Recipe,
    tokenizer: Tokenizer,
    data: TextData | ExampleData,
    settings: TrainSettings,
    folder: Path,
    device: str | None,
    *,
    init: Path | None = None,
    checkpoint: str | None = None,
    smaller: Model[Any] | None = None,
    new_layers: Sequence[str] = (),
    reference: ReferenceModel | None = None,
    vectors: Path | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Compile a recipe, start from the weights of a run or from a smaller model if there is one, and train it."""
    from composer.published import start_from_published
    from composer.published.folder import is_published
    from composer.train import grow, load_vectors, mup_init, start_from, train

    model = recipe.compile(device=chosen_device(device), seed=settings.seed)
    if settings.mup:
        mup_init(model, settings.mup)
    if smaller is not None:
        say(str(grow(model, smaller, new_layers=new_layers)))
    elif init is not None and is_published(init):
        say(str(start_from_published(model, init, blocks=recipe.blocks)))
    elif init is not None:
        say(str(start_from(model, init, checkpoint=checkpoint, tokenizer=tokenizer)))
    if vectors is not None:
        say(str(load_vectors(model, tokenizer, vectors)))
    following = [*callbacks, announcement(recipe.name, data.name, folder)]
    return train(model, tokenizer, data, settings, folder, recipe=recipe.text, reference=reference, callbacks=following)


def start_of(arguments: argparse.Namespace, recipe: Recipe) -> dict[str, Any]:
    """Return what a model starts from, as arguments of `trained`."""
    given = {name: getattr(arguments, name) for name in ("init", "checkpoint", "vectors")}
    smaller = smaller_model(arguments, recipe) if arguments.grow else None
    return {**given, "smaller": smaller, "new_layers": tuple(arguments.new_layers or ())}


def smaller_model(arguments: argparse.Namespace, recipe: Recipe) -> Model[Any]:
    """Return the model of `--init`, which a larger one grows from."""
    from composer.loading import load
    from composer.lower.model import Model
    from composer.published.folder import is_published
    from composer.train import open_run

    if is_published(arguments.init):
        return load(arguments.init, blocks=recipe.blocks).pretrained(device=arguments.device)
    found = open_run(arguments.init, build=rebuild(arguments.blocks, arguments.device), checkpoint=arguments.checkpoint).model
    assert isinstance(found, Model)
    return found


def resumed(arguments: argparse.Namespace) -> Result:
    """Continue the training of a run folder."""
    from composer.train import TrainSettings, resume

    changed = {field.name for field in fields(TrainSettings) if getattr(arguments, field.name) is not None} - {"steps"}
    if changed or arguments.set or arguments.tokenizer or arguments.vocab_size is not None:
        raise Problem(
            "arco train: a resumed run keeps its recipe and its settings",
            "only --steps, --data, --max-data-bytes, --cache, --checkpoint, --reference, --watch, --log, --peak-flops, --device "
            "and --blocks go with --resume",
        )
    return resume(
        arguments.resume,
        build=rebuild(arguments.blocks, arguments.device),
        steps=arguments.steps,
        data=arguments.data,
        max_data_bytes=arguments.max_data_bytes,
        cache=arguments.cache,
        checkpoint=arguments.checkpoint,
        reference=arguments.reference,
        callbacks=callbacks_of(arguments),
    )


def context_of(recipe: Recipe, usual: int) -> int:
    """Return the default length of a window: the param `context` if the recipe has one, else `usual`."""
    context = recipe.program.untyped.params.get("context")
    return context if isinstance(context, int) else usual


def long_context(settings: TrainSettings, tokens: int) -> str:
    """Return a warning if the recipe's own context is too long for the text or for a laptop, else an empty string."""
    windows, step = tokens // settings.seq_len, settings.batch_size * settings.seq_len
    if 0 < windows < FEW_WINDOWS:
        return f"the recipe's context of {settings.seq_len:,} cuts the text into only {windows} windows; set a shorter --seq-len"
    if step > LARGE_STEP:
        return (
            f"the recipe's context of {settings.seq_len:,} times a batch size of {settings.batch_size} makes {step:,} tokens "
            "per step; on a laptop, --seq-len 256 is faster"
        )
    return ""


def left_out(data: TextData, window: int) -> str:
    """Return a warning if some documents are too short for a sequence but others are not, else an empty string."""
    from composer.train.data.text import too_short

    documents, tokens = too_short(data, window)
    if not 0 < documents < len(data.train_ends):
        return ""
    return (
        f"{documents:,} of {len(data.train_ends):,} files, with {tokens / len(data.train):.1%} of the tokens, are shorter than a "
        f"window of {window} tokens and are not trained on; set a shorter --seq-len"
    )


def settings_of(arguments: argparse.Namespace, usual: TrainSettings) -> TrainSettings:
    """Return the settings with those of the command line."""
    from composer.train.settings import SEVERAL

    given = {field.name: getattr(arguments, field.name) for field in fields(usual)}
    given |= {name: tuple(given[name]) for name in SEVERAL if given[name] is not None}
    return replace(usual, **{name: value for name, value in given.items() if value is not None})


def free_folder(name: str) -> Path:
    """Return `runs/NAME`, with a number appended if it exists."""
    folder, count = RUNS / name, 1
    while folder.exists():
        count += 1
        folder = RUNS / f"{name}-{count}"
    return folder


def ending(result: Result) -> str:
    """Return the final message: the validation loss, and the command that generates text, if one does."""
    task = TASKS.get(result.task or "")
    if task is None or not task.text or "features" in task.inputs:
        return str(result)
    given = "--image FILE" if "image" in task.inputs else "--prompt TEXT"
    return f"{result}\ngenerate text: arco generate {result.run} {given}"
