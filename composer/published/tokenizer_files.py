"""The tokenizer of a run as the files of a published folder, which `AutoTokenizer` of transformers reads."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Pieces

    from composer.train.data.tokenizers import Tokenizer

ANY_CHARACTER = r"[\s\S]"


def token_ids(tokenizer: Tokenizer | None, task: str | None, *, also: Collection[str] = ()) -> dict[str, int | None]:
    """Return the ids of special tokens by the keys that settings have for them; None for those that the tokenizer lacks.

    Every key is there, for transformers has ids of its own for those that are not.

    Args:
        tokenizer: The tokenizer of a run; None without one.
        task: The task of the recipe.
        also: Keys that the settings of this type have besides, of which those of special tokens get theirs.
    """
    from composer.train.data.fitting import padding_of
    from composer.train.data.objectives import END, MASK, START

    start, end = _mark(tokenizer, START), _mark(tokenizer, END)
    padding = None if tokenizer is None else padding_of(tokenizer)
    found = {"bos_token_id": start, "eos_token_id": end, "pad_token_id": end if padding is None else padding}
    known = TASKS.get(task or "")
    if known is not None and known.text == "target":
        found["decoder_start_token_id"] = start
    of_encoders = {"cls_token_id": None, "sep_token_id": None, "mask_token_id": _mark(tokenizer, MASK)}
    return found | {key: token for key, token in of_encoders.items() if key in also}


def tokenizer_files(tokenizer: Tokenizer, context: int | None) -> Mapping[str, str]:
    """Return the texts of `tokenizer.json` and `tokenizer_config.json`, with which every text has the same ids.

    A text that a decoder is to continue or to translate gets its end token, if the tokenizer has one. Where a tokenizer of
    characters refuses a text, so do these.

    Args:
        tokenizer: The tokenizer of a run.
        context: The number of tokens that the model reads at most; None if it does not say.
    """
    from composer.train.data.marks import PADDING
    from composer.train.data.objectives import END, MASK, START
    from composer.train.data.tokenizers import MarkedTokenizer, PiecesTokenizer

    marks = tokenizer.marks if isinstance(tokenizer, MarkedTokenizer) else ()
    plain = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    pieces = _pieces(plain)
    if isinstance(plain, PiecesTokenizer) and not (isinstance(tokenizer, MarkedTokenizer) and tokenizer.added):
        limit = {} if context is None else {"model_max_length": context}
        own = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **limit, **plain.words}
        return {"tokenizer.json": pieces.to_str(pretty=True), "tokenizer_config.json": json.dumps(own, indent=2)}
    roles = {"bos_token": START, "eos_token": END, "pad_token": PADDING if PADDING in marks else END, "mask_token": MASK}
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **({} if context is None else {"model_max_length": context}),
        **{role: mark for role, mark in roles.items() if mark in marks},
    }
    if marks:
        _add_marks(pieces, marks)
    return {"tokenizer.json": pieces.to_str(pretty=True), "tokenizer_config.json": json.dumps(settings, indent=2)}


def _mark(tokenizer: Tokenizer | None, mark: str) -> int | None:
    from composer.train.data.tokenizers import MarkedTokenizer, PiecesTokenizer

    if isinstance(tokenizer, PiecesTokenizer):
        return tokenizer.special.get(mark)
    if isinstance(tokenizer, MarkedTokenizer) and (mark in tokenizer.marks or mark in tokenizer.known):
        return tokenizer.mark(mark)
    return None


def _add_marks(pieces: Pieces, marks: tuple[str, ...]) -> None:
    from tokenizers import AddedToken
    from tokenizers.processors import TemplateProcessing

    from composer.train.data.objectives import END

    pieces.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in marks])
    if END in marks:
        end = [(END, pieces.token_to_id(END))]
        pieces.post_processor = TemplateProcessing(single=f"$A {END}", pair=f"$A {END} $B {END}", special_tokens=end)


def _pieces(tokenizer: Tokenizer) -> Pieces:
    """Return a tokenizer without marks as one of the `tokenizers` library."""
    from tokenizers import Regex, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Pieces

    from composer.train.data.tokenizers import BPETokenizer, ByteTokenizer, CharacterTokenizer, PiecesTokenizer

    match tokenizer:
        case BPETokenizer() | PiecesTokenizer():
            return Pieces.from_str(tokenizer.pieces.to_str())
        case ByteTokenizer():
            pieces = Pieces(models.BPE({letter: byte for byte, letter in enumerate(_letters_of_bytes())}, []))
            pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            pieces.decoder = decoders.ByteLevel()
            return pieces
        case CharacterTokenizer():
            pieces = Pieces(models.WordLevel(dict(tokenizer.ids)))
            pieces.pre_tokenizer = pre_tokenizers.Split(Regex(ANY_CHARACTER), "isolated")
            pieces.decoder = decoders.Fuse()
            return pieces
    raise TypeError(f"{tokenizer!r} is not a tokenizer that a run can have")


def _letters_of_bytes() -> list[str]:
    """Return the letter that stands for each byte in a vocabulary of bytes: printable ones for themselves, the others from U+0100
    on, as in GPT-2.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
