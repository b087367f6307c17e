"""`arco tokens`: show the tokens of a text, and what vocabularies of several kinds and sizes come to."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, integer
from composer.cli.output import add_output, emit
from composer.cli.running import refusals, tokenizer_at
from composer.printable import json_text
from composer.train.data.tokenizer_kinds import SIZED, TOKENIZER_KINDS

if TYPE_CHECKING:
    from composer.train import BPETokenizer, PiecesTokenizer, Tokenizer

SIZES = (512, 2048, 8192)
"""The sizes of vocabularies in a table."""


def declare(parser: Parser, name: str) -> None:
    """Declare the text, and where the tokenizer is from."""
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="Texts whose tokens are shown")
    parser.add_argument(
        "--tokenizer",
        metavar="NAME",
        default="characters",
        help=f"Tokenizer: {', '.join(TOKENIZER_KINDS)}, made from the texts of --data; or a run or published folder, for its own",
    )
    parser.add_argument(
        "--data", metavar="FILE", action="append", type=Path,
        help="Text that a tokenizer is made from, as for `arco train`; may be repeated (default: the texts to be shown)",
    )  # fmt: skip
    parser.add_argument("--vocab-size", metavar="N", type=integer, help=f"Vocabulary size of {', '.join(SIZED)}")
    parser.add_argument("--merges", metavar="N", type=integer, action=StoreOnce, help="Also show the first merges of bpe")
    parser.add_argument(
        "--table", action="store_true", help="Print what tokenizers of all kinds and several sizes make of the texts of --data"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="Output format")
    add_output(parser)
    parser.examples = [
        ("See how a byte-pair encoding cuts a text", 'arco tokens "I don\'t like cats" --tokenizer bpe --data input.txt'),
        ("See the tokens of a published model", 'arco tokens "I don\'t like cats" --tokenizer bert-base-uncased'),
        ("Look at the first merges", "arco tokens --tokenizer bpe --vocab-size 300 --data input.txt --merges 5"),
        ("Compare the size of the vocabulary with the length of a text", "arco tokens --data input.txt --table"),
    ]
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print tokens, merges or the table."""
    if not (arguments.texts or arguments.merges or arguments.table):
        raise Problem("arco tokens: there is no text", 'such as arco tokens "I like cats", or --table with --data')
    if arguments.table and arguments.data is None:
        raise Problem("arco tokens: --table needs --data", "the texts that tokenizers are made from")
    if arguments.table and (arguments.texts or arguments.merges):
        raise Problem("arco tokens: --table reads the texts of --data alone", "remove what else is asked for")
    with refusals():
        shown = table(arguments) if arguments.table else tokens(arguments)
    emit(shown.rstrip("\n") + "\n", arguments.output)
    return 0


def tokens(arguments: argparse.Namespace) -> str:
    """Return the tokens of the texts, each with its id, and the first merges if they are asked for."""
    tokenizer = tokenizer_of(arguments)
    merges = merges_of(tokenizer, arguments.merges) if arguments.merges else []
    rows = [{"text": text, "tokens": pieces_of(tokenizer, text)} for text in arguments.texts]
    if arguments.format == "json":
        found = {"vocabulary": tokenizer.size, "texts": rows, **({"merges": merges} if merges else {})}
        return json_text(found, indent=2)
    parts = []
    if merges:
        parts.append("\n".join(f"{number:>4}  {left} + {right}" for number, (left, right) in enumerate(merges, 1)))
    for text in arguments.texts:
        found_pieces = pieces_of(tokenizer, text)
        width = max((len(str(each["id"])) for each in found_pieces), default=2)
        lines = [f"{each['id']:>{max(width, 2)}}  {each['token']}" for each in found_pieces]
        per = f", {len(text) / len(found_pieces):.2g} characters each" if found_pieces else ""
        parts.append("\n".join([*lines, f"{len(found_pieces)} tokens{per}, of a vocabulary of {tokenizer.size:,}"]))
    return "\n\n".join(parts)


def tokenizer_of(arguments: argparse.Namespace) -> Tokenizer:
    """Return the tokenizer that is named, made from texts if it is one of a kind.

    Raises:
        Problem: There is none of this name.
    """
    from composer.train import make_tokenizer

    name = arguments.tokenizer
    if name in TOKENIZER_KINDS:
        text = "\n".join(arguments.texts) if arguments.data is None else text_of(arguments)
        return make_tokenizer(name, text, size=arguments.vocab_size)
    if arguments.vocab_size is not None or arguments.data is not None:
        option = "--vocab-size" if arguments.vocab_size is not None else "--data"
        raise Problem(f"arco tokens: {option} is for a tokenizer that is made from a text", f"{name} is none")
    return tokenizer_at(name, "arco tokens")


def text_of(arguments: argparse.Namespace) -> str:
    """Return the texts of `--data`."""
    from composer.train import read_documents
    from composer.train.settings import MAX_DATA_BYTES

    return "".join(document.text for document in read_documents(arguments.data, max_bytes=MAX_DATA_BYTES))


def pieces_of(tokenizer: Tokenizer, text: str) -> list[dict[str, object]]:
    """Return the tokens of a whole text, each with its id: as the vocabulary has it, or the text that it stands for. Marks of the
    task of a model, such as `<mask>`, are read where they stand.
    """
    from composer.train import BPETokenizer, MarkedTokenizer, PiecesTokenizer
    from composer.train.data.examples import encoder_of_wholes

    plain = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    marks: dict[int, str] = {}
    encode = encoder_of_wholes(tokenizer)
    if isinstance(tokenizer, MarkedTokenizer):
        marks = {tokenizer.mark(mark): mark for mark in tokenizer.marks}
        encode = tokenizer.encode_marked if any(mark in text for mark in tokenizer.marks) else encode

    def shown(token: int) -> str:
        if token in marks:
            return marks[token]
        return spelled(plain, token) if isinstance(plain, BPETokenizer | PiecesTokenizer) else quoted(plain.decode([token]))

    return [{"id": token, "token": shown(token)} for token in encode(text)]


def spelled(tokenizer: BPETokenizer | PiecesTokenizer, token: int) -> str:
    """Return a token as its vocabulary has it; of bytes, the text that they stand for where it is one."""
    from tokenizers import decoders

    word = tokenizer.pieces.id_to_token(token) or ""
    special = {each.content for each in tokenizer.pieces.get_added_tokens_decoder().values()}
    if isinstance(tokenizer.pieces.decoder, decoders.ByteLevel) and word not in special:
        said = tokenizer.decode([token])
        return word if "\N{REPLACEMENT CHARACTER}" in said else quoted(said)
    return word


def quoted(text: str) -> str:
    """Return a text with a mark for each space, and escapes for what cannot be seen."""
    return json_text(text)[1:-1].replace('\\"', '"').replace(" ", "\N{OPEN BOX}")


def merges_of(tokenizer: Tokenizer, count: int) -> list[tuple[str, str]]:
    """Return the first merges of a byte-pair encoding, in the order in which they were learned.

    Raises:
        Problem: It has none.
    """
    from composer.train import BPETokenizer, MarkedTokenizer, PiecesTokenizer

    plain = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    merges: list[str | list[str]] = []
    if isinstance(plain, BPETokenizer | PiecesTokenizer):
        content = plain.to_json()
        merges = (content.get("pieces") or content)["model"].get("merges") or []
    if not merges:
        raise Problem("arco tokens: this tokenizer has no merges", "a byte-pair encoding has: --tokenizer bpe")
    pairs = [each.split(" ") if isinstance(each, str) else each for each in merges[:count]]
    return [(seen(left), seen(right)) for left, right in pairs]


def seen(word: str) -> str:
    """Return a piece of a byte-level vocabulary with the signs of this command for space and line break."""
    return word.replace("\u0120", "\N{OPEN BOX}").replace("\u010a", "\\n")


def table(arguments: argparse.Namespace) -> str:
    """Return what tokenizers of every kind make of a text: the larger the vocabulary, the fewer tokens."""
    from composer.train import PiecesTokenizer, TrainingError, make_tokenizer
    from composer.train.data.learned_tokenizers import UNKNOWN
    from composer.train.data.text import encode

    text = text_of(arguments)
    words = len(re.findall(r"\S+", text))
    if not words:
        raise TrainingError("there are no words in this text")
    rows: list[tuple[str, int, int, float]] = []
    for name, kind in TOKENIZER_KINDS.items():
        known = -1
        for size in (None,) if kind.size is None else (arguments.vocab_size,) if arguments.vocab_size else SIZES:
            tokenizer = make_tokenizer(name, text, size=size)
            if tokenizer.size == known:
                break  # the text has no more
            known = tokenizer.size
            ids = encode(text, tokenizer)
            unknown = tokenizer.pieces.token_to_id(UNKNOWN) if isinstance(tokenizer, PiecesTokenizer) else None
            rows.append((name, known, len(ids), float((ids == unknown).mean()) if unknown is not None else 0.0))
    if arguments.format == "json":
        keys = ("tokenizer", "vocabulary", "tokens", "unknown")
        return json_text([{**dict(zip(keys, row, strict=True)), "tokens_per_word": row[2] / words} for row in rows], indent=2)
    lines = [("tokenizer", "vocabulary", "tokens", "per word", "unknown")]
    for name, vocabulary, count, share in rows:
        lines.append((name, f"{vocabulary:,}", f"{count:,}", f"{count / words:.2f}", f"{share:.1%}" if share else ""))
    return aligned(lines)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    found = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        found.append("  ".join(cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(cells)))
    return "\n".join(line.rstrip() for line in found)
