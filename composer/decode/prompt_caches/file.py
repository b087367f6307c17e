"""The file of a prompt cache: the tokens of a prompt, what a session keeps after it, and of which model that is.

It is a file of safetensors. All but the tensors is a description in JSON in its metadata, beside the SHA-256 of that and of the
tensors.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from annotated_types import Ge
from pydantic import ConfigDict, TypeAdapter, ValidationError
from torch import Tensor

from composer.atomic_files import aside
from composer.decode.calls.checks import CallsSoFar
from composer.decode.errors import PromptCacheError
from composer.decode.prompt_caches.kept_tensors import (
    KeptCache,
    KeptTensor,
    TensorWriter,
    kept_caches,
    kept_results,
    restored_caches,
    tensor_of,
)
from composer.decode.session_mark import SessionMark
from composer.language.wording import counted
from composer.lower.checksums import checksum_of
from composer.lower.int8 import Int8Matrix
from composer.lower.model import Model
from composer.version import __version__

FORMAT = 1
"""The number of the format that this version writes and reads."""
DESCRIPTION, CHECKSUM = "prompt_cache", "sha256"
"""The entries of the metadata."""
PLACE = re.compile(r"  # .*:\d+$", re.MULTILINE)
"""The comment of a line of generated source that says where its node is in which file, wherever that lies."""
OTHER = "remove it, or name another file"
Count = Annotated[int, Ge(0)]


@dataclass(frozen=True)
class Fingerprint:
    """What the model that goes on from a prompt cache must have in common with the one that read the prompt."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    composer: str
    """The version of Composer."""
    source: str
    """The SHA-256 of the generated source."""
    dtypes: str
    """The dtypes of the parameters."""
    weights: str
    """The SHA-256 of the weights."""


@dataclass(frozen=True)
class StoredPrompt:
    """A prompt, and what a session keeps after it."""

    tokens: Tensor
    """int64 [B, T], on the CPU."""
    logits: Tensor | None
    """The logits of the token that follows, [B, V], where they were kept."""
    mark: SessionMark


@dataclass(frozen=True)
class _Description:
    """All of a prompt cache but the tensors."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    format: int
    model: Fingerprint
    length: Count
    rows: Count
    given: list[str]
    prefix: Count
    encoded: list[int | None]
    whole: dict[str, str]
    caches: list[KeptCache]
    once: dict[str, list[KeptTensor | list[KeptTensor | None] | None]]
    tokens: KeptTensor
    logits: KeptTensor | None


def fingerprint_of(model: Model) -> Fingerprint:
    """Return the fingerprint of a model, for which all its weights are read."""
    source = hashlib.sha256(PLACE.sub("", model.source).encode()).hexdigest()
    kinds = {"int8" if isinstance(one, Int8Matrix) else str(one.dtype).removeprefix("torch.") for one in model.parameters()}
    return Fingerprint(__version__, source, ", ".join(sorted(kinds)), checksum_of(model.state_dict()))


def write_prompt_cache(path: Path, prompt: StoredPrompt, model: Model, fingerprint: Fingerprint | None = None) -> None:
    """Write a prompt cache: aside, and then under its name.

    Args:
        path: The file; one that is there is replaced.
        prompt: The prompt, and what a session keeps after it.
        model: The model that has read it.
        fingerprint: The fingerprint of the model, if it is known.

    Raises:
        PromptCacheError: The session has read no such tokens, or keeps what no file can hold.
        OSError: The file cannot be written; an existing one is left unchanged.
    """
    from safetensors.torch import save_file

    mark, tokens, layout = prompt.mark, prompt.tokens, model.cache_layout
    assert layout is not None
    if not layout.nodes:
        raise PromptCacheError("the model keeps nothing of the tokens before, so a prompt cache would save nothing")
    if mark.calls is None or tokens.dtype.is_floating_point or list(tokens.shape) != [mark.rows, mark.length]:
        read = f"{counted(mark.rows or 0, 'row')} of {counted(mark.length, 'token')}"
        raise PromptCacheError(f"the session has read {read}, and `tokens` are {str(tokens.dtype)[6:]} {list(tokens.shape)}")
    writer = TensorWriter()
    description = _Description(
        format=FORMAT,
        model=fingerprint or fingerprint_of(model),
        length=mark.length,
        rows=len(tokens),
        given=sorted(mark.calls.given),
        prefix=mark.calls.prefix,
        encoded=list(mark.calls.encoded),
        whole=checksums_of(mark.calls.whole),
        caches=kept_caches(mark.caches, layout, writer),
        once=kept_results(mark.once, writer),
        tokens=writer.add("tokens", tokens.to(torch.int64)),
        logits=None if prompt.logits is None else writer.add("logits", prompt.logits),
    )
    text = json.dumps(asdict(description), separators=(",", ":"))
    with aside(path) as temporary:
        save_file(writer.tensors, temporary, metadata={DESCRIPTION: text, CHECKSUM: _checksum(text, writer.tensors)})


def read_prompt_cache(path: Path, model: Model, fingerprint: Fingerprint | None = None) -> StoredPrompt:
    """Return what a prompt cache holds, with its tensors on the device of the model.

    Args:
        path: The file.
        model: The model that shall go on from it.
        fingerprint: The fingerprint of the model, if it is known.

    Raises:
        PromptCacheError: There is no such file, it is damaged or another kind of file, or it is of another model, other weights
            or another version.
    """
    text, checksum, stored = _content(path)
    if checksum != _checksum(text, stored):
        raise damaged(path, "its content differs from its checksum")
    number = _format_of(text)
    if number != FORMAT:
        raise PromptCacheError(f"{path} has the format {number!r:.40}; this version of Composer reads {FORMAT}", hint=OTHER)
    try:
        description = TypeAdapter(_Description).validate_json(text)
    except ValidationError:
        raise damaged(path, "its description has another form") from None
    _compare(path, description.model, fingerprint or fingerprint_of(model))
    layout, device = model.cache_layout, next(model.parameters()).device
    assert layout is not None
    try:
        tensors = {name: tensor.to(device) for name, tensor in stored.items()}
        caches = restored_caches(description.caches, layout, tensors, description.rows, description.length)
        once = {name: tuple(_result(one, tensors) for one in results) for name, results in description.once.items()}
        tokens = tensor_of(description.tokens, stored)
        logits = None if description.logits is None else tensor_of(description.logits, tensors)
        if list(tokens.shape) != [description.rows, description.length] or tokens.dtype != torch.int64:
            raise ValueError("its tokens are not those of its length")
    except (KeyError, ValueError) as error:
        raise damaged(path, str(error) if isinstance(error, ValueError) else f"it lacks {error!s:.80}") from None
    encoded, whole = tuple(description.encoded), dict(description.whole)
    calls = CallsSoFar(frozenset(description.given), description.prefix, encoded, whole)
    return StoredPrompt(tokens, logits, SessionMark(description.length, description.rows, calls, caches, once))


def checksums_of(whole: Mapping[str, Tensor | str]) -> dict[str, str]:
    """Return the checksums of inputs, of which some are checksums already."""
    return {name: value if isinstance(value, str) else checksum_of({name: value}) for name, value in whole.items()}


def damaged(path: Path, how: str) -> PromptCacheError:
    """Return the error of a file that is damaged."""
    return PromptCacheError(f"{path} is damaged: {how}", hint=OTHER)


def _content(path: Path) -> tuple[str, str, dict[str, Tensor]]:
    """Return the description of a file, its checksum and its tensors."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise PromptCacheError(f"cannot read {path}: {'it is no ordinary file' if path.exists() else 'there is no such file'}")
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            if DESCRIPTION not in about or CHECKSUM not in about:
                raise PromptCacheError(f"{path} is no prompt cache, but another file of safetensors", hint=OTHER)
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # it is no mapping
    except SafetensorError as error:
        raise damaged(path, f"it is no whole file of safetensors ({error})") from None
    except OSError as error:
        raise PromptCacheError(f"cannot read {path}: {error.strerror or error}") from None
    return about[DESCRIPTION], about[CHECKSUM], tensors


def _format_of(description: str) -> object:
    """Return the number of the format that a description says; None without one."""
    try:
        values = json.loads(description)
    except ValueError:
        return None
    return values.get("format") if isinstance(values, dict) else None


def _checksum(description: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of all that a file holds."""
    return hashlib.sha256(f"{description}\n{checksum_of(tensors)}".encode()).hexdigest()


def _compare(path: Path, found: Fingerprint, expected: Fingerprint) -> None:
    """Raise `PromptCacheError` unless a prompt cache is of this model."""
    if found.composer != expected.composer:
        message = f"was written by Composer {found.composer!r:.40}, and this is {expected.composer!r:.40}"
    elif found.source != expected.source:
        message = "is of another recipe than this model, or of other settings of it"
    elif found.dtypes != expected.dtypes:
        message = f"is of weights in {found.dtypes!r:.40}, and this model has them in {expected.dtypes!r:.40}"
    elif found.weights != expected.weights:
        message = "is of other weights than those of this model"
    else:
        return
    raise PromptCacheError(f"{path} {message}", hint=OTHER)


def _result(kept: KeptTensor | list[KeptTensor | None] | None, tensors: Mapping[str, Tensor]) -> Any:
    """Return what a module computed once: a tensor, or several."""
    if isinstance(kept, list):
        return tuple(None if one is None else tensor_of(one, tensors) for one in kept)
    return None if kept is None else tensor_of(kept, tensors)
