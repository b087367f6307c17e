"""The tokenizer of a published folder, with its special tokens, its chat template and the tokens that end a text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.language.source_file import content_of
from composer.printable import json_text
from composer.published.gguf_tokenizer import gguf_tokenizer
from composer.weights.other_formats import refuse
from composer.weights.published_files import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Pieces

    from composer.train.data.tokenizers import PiecesTokenizer

DELIMITER = "word_delimiter_token"
"""The name of the token that stands for a space, in a tokenizer of transcripts (CTC)."""
LIMIT = 1 << 28
"""The largest size of the file of a tokenizer that is read, in bytes."""


@dataclass(frozen=True, eq=False)
class PublishedTokenizer:
    """The tokenizer of a published folder."""

    pieces: Pieces
    special: Mapping[str, str]
    """The words of special tokens by what they are for: `mask_token`."""
    stop: frozenset[int]
    """The tokens that end a text."""
    chat_template: str | None
    folder: Path
    start: int | None = None
    """The token with which a decoder begins, if the settings name one."""

    @cached_property
    def size(self) -> int:
        """The number of tokens."""
        return max(self.pieces.get_vocab().values(), default=-1) + 1

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the ids of a text, in which words of special tokens are read as these.

        Args:
            text: The text.
            special: Whether the tokens that begin and end every text are added.

        Raises:
            TrainingError: A character of the text has no token.
        """
        from composer.train.data.tokenizers import ids_in_pieces

        return ids_in_pieces(self.pieces, text, special=special)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens.

        Args:
            ids: The ids.
        """
        return str(self.pieces.decode(list(ids), skip_special_tokens=True))

    def id_of(self, name: str) -> int | None:
        """Return the id of a special token, such as `mask_token`; None without one."""
        word = self.special.get(name)
        return None if word is None else self.pieces.token_to_id(word)

    def as_it_comes(self, ids: Iterable[int], *, after: Sequence[int] = ()) -> Iterator[str]:
        """Yield the text of a stream of ids piece by piece, each once it is a whole character."""
        from composer.train.data.tokenizers import text_as_it_comes

        return text_as_it_comes(self.to_train(), ids, after=after)

    def to_train(self) -> PiecesTokenizer:
        """Return the tokenizer as one that a model can be trained with, with ids for the marks that tasks need."""
        from composer.train.data.marks import BLANK, END, GAPS, MASK, START
        from composer.train.data.tokenizers import PiecesTokenizer

        roles = {START: ("bos_token", "cls_token"), END: ("eos_token", "sep_token"), MASK: ("mask_token",)}
        roles |= {BLANK: ("pad_token",)} if DELIMITER in self.special else {}
        found = {mark: [self.id_of(name) for name in names] for mark, names in roles.items()}
        special = {mark: next((one for one in ids if one is not None), None) for mark, ids in found.items()}
        special |= {gap: self.pieces.token_to_id(f"<extra_id_{number}>") for number, gap in enumerate(GAPS)}
        special[START] = special[START] if self.start is None else self.start
        return PiecesTokenizer(self.pieces, {mark: one for mark, one in special.items() if one is not None}, self.special)

    def chat(self, message: str) -> str:
        """Return what a user says as the chat template puts it, up to where the answer begins.

        Args:
            message: What the user says.

        Raises:
            RecipeError: The template cannot be filled.
        """
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        assert self.chat_template is not None
        sandbox = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        sandbox.filters["tojson"] = lambda value, **_: json_text(value)
        sandbox.globals["raise_exception"] = _refused
        messages = [{"role": "user", "content": message}]
        try:
            return sandbox.from_string(self.chat_template).render(messages=messages, add_generation_prompt=True, **self.special)
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            refuse("unreadable-file", f"the chat template cannot be filled: {error}", self.folder)


def published_tokenizer(folder: Path) -> PublishedTokenizer:
    """Return the tokenizer of a published folder.

    Raises:
        RecipeError: There is none, or it is of a kind that is not read.
    """
    if folder.is_file():
        return _of_gguf(folder)
    settings, generation, config = (
        _object(folder / name) for name in ("tokenizer_config.json", "generation_config.json", "config.json")
    )
    special = _special({**_object(folder / "special_tokens_map.json"), **settings})
    if _is_of_transcripts(folder, settings, config):
        special = {**SPOKEN, **special}
        pieces = _characters(folder, special)
    else:
        pieces = _pieces(folder, settings)
    pieces.no_padding()
    pieces.no_truncation()
    stop = {token for source in (generation, config) for token in _ids(source.get("eos_token_id"))}
    if "eos_token" in special and (ending := pieces.token_to_id(special["eos_token"])) is not None:
        stop.add(ending)
    starts = [one for source in (generation, config) for one in _ids(source.get("decoder_start_token_id"))]
    return PublishedTokenizer(pieces, special, frozenset(stop), _template(folder, settings), folder, next(iter(starts), None))


def _of_gguf(file: Path) -> PublishedTokenizer:
    """Return the tokenizer that a GGUF file holds."""
    from tokenizers import Tokenizer

    texts = gguf_tokenizer(file)
    if not texts:
        refuse("missing-file", "the tokenizer of this file is of a kind that is not read", file)
    try:
        pieces = Tokenizer.from_str(texts["tokenizer.json"])
    except Exception as error:  # the library raises no narrower type
        refuse("unreadable-file", f"the tokenizer cannot be read: {str(error)[:200]}", file)
    settings = json.loads(texts["tokenizer_config.json"])
    special = _special(settings)
    ending = pieces.token_to_id(special["eos_token"]) if "eos_token" in special else None
    stop = frozenset(() if ending is None else (ending,))
    return PublishedTokenizer(pieces, special, stop, settings.get("chat_template"), file)


def _pieces(folder: Path, settings: Mapping[str, Any]) -> Pieces:
    """Return the tokenizer of a folder's own library, or one made of its vocabulary."""
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer, Tokenizer

    whole, words, pairs = folder / "tokenizer.json", folder / "vocab.txt", folder / "merges.txt"
    try:
        if whole.is_file():
            content = _content(whole)
            _refuse_patterns(json.loads(content), whole)
            return Tokenizer.from_str(content.decode("utf-8"))
        if words.is_file():
            lower = bool(settings.get("do_lower_case", True))
            made: Any = BertWordPieceTokenizer(_vocabulary(words), lowercase=lower)
            return Tokenizer.from_str(made.to_str())
        if pairs.is_file() and (folder / "vocab.json").is_file():
            made = ByteLevelBPETokenizer(read_json(folder / "vocab.json"), _merges(pairs))
            return Tokenizer.from_str(made.to_str())
    except Exception as error:  # the library raises no narrower type
        if hasattr(error, "diagnostics"):
            raise
        refuse("unreadable-file", f"the tokenizer cannot be read: {str(error)[:200]}", folder)
    there = [each.name for each in folder.glob("*.model")]
    message = f"there is no tokenizer.json in this folder{f', and {there[0]} is not read' if there else ''}"
    refuse(
        "missing-file", message, folder, hint="`AutoTokenizer.from_pretrained(…).save_pretrained(…)` of transformers writes it"
    )


SPOKEN = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", DELIMITER: "|"}
"""The special tokens of `Wav2Vec2CTCTokenizer`, where its settings name no others."""


def _is_of_transcripts(folder: Path, settings: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Return whether a folder has a `Wav2Vec2CTCTokenizer`, a vocabulary of characters; older ones do not say so."""
    if (folder / "tokenizer.json").is_file() or not (folder / "vocab.json").is_file() or settings.get("do_lower_case"):
        return False
    kind = settings.get("tokenizer_class")
    return kind == "Wav2Vec2CTCTokenizer" or (kind is None and config.get("model_type") == "wav2vec2")


def _characters(folder: Path, special: Mapping[str, str]) -> Pieces:
    """Return a tokenizer of the characters in a vocabulary, of which one stands for a space."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    from composer.published.tokenizer_files import ANY_CHARACTER

    try:
        pieces = Tokenizer(models.WordLevel(read_json(folder / "vocab.json"), unk_token=special["unk_token"]))
        pieces.add_special_tokens([word for name, word in special.items() if name != DELIMITER])
    except Exception as error:  # the library raises no narrower type
        if hasattr(error, "diagnostics"):
            raise
        refuse("unreadable-file", f"the tokenizer cannot be read: {str(error)[:200]}", folder)
    pieces.normalizer = normalizers.Replace(" ", special[DELIMITER])
    pieces.pre_tokenizer = pre_tokenizers.Split(Regex(ANY_CHARACTER), "isolated")
    pieces.decoder = decoders.Sequence([decoders.Replace(special[DELIMITER], " "), decoders.Fuse()])
    return pieces


def _refuse_patterns(content: Any, file: Path) -> None:
    """Raise `RecipeError` for a pattern that may take a time without bound: the library has none."""
    from composer.train.data.tokenizer_files import unknown_pattern

    if (pattern := unknown_pattern(content)) is not None:
        message = f"this tokenizer cuts a text by a pattern that is not known here: {pattern[:200]}"
        refuse("unreadable-file", message, file)


def _special(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the words of special tokens by what they are for."""
    found = {}
    for name, value in settings.items():
        word = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(word, str):
            found[name] = word
    return found


def _template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return _content(file).decode("utf-8")
    value = settings.get("chat_template") or _object(folder / "chat_template.json").get("chat_template")
    if isinstance(value, list):
        named = {each.get("name"): each.get("template") for each in value if isinstance(each, dict)}
        value = named.get("default")
    return value if isinstance(value, str) else None


def _content(file: Path) -> bytes:
    content = content_of(file, LIMIT + 1)
    if len(content) > LIMIT:
        refuse("too-large", f"a file of a tokenizer has at most {LIMIT} bytes", file)
    return content


def _vocabulary(file: Path) -> dict[str, int]:
    return {word: index for index, word in enumerate(_content(file).decode("utf-8").splitlines())}


def _merges(file: Path) -> list[tuple[str, str]]:
    lines = (line.split(" ") for line in _content(file).decode("utf-8").splitlines() if not line.startswith("#version"))
    return [(words[0], words[1]) for words in lines if len(words) == 2]


def _object(file: Path) -> dict[str, Any]:
    return read_json(file) if file.is_file() else {}


def _ids(value: Any) -> list[int]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, int)]


def _refused(message: str) -> None:
    raise ValueError(message)
