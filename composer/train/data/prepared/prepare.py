"""Texts that are prepared once: scanned, and made into tokens that stay in files; each start after the first finds them again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import tokenizers

from composer.atomic_files import StrPath
from composer.train.data.documents import COMPRESSED_SUFFIXES, ReadLimit, counts_by_source, documents_in, sources_of
from composer.train.data.learned_tokenizers import checked_size, tokenizer_of
from composer.train.data.mixtures import mixed
from composer.train.data.prepared import token_files
from composer.train.data.prepared.encoding import Ids, dtype_of
from composer.train.data.prepared.joined import SMALL, in_temporary_file, joined_texts, same_tokenizer
from composer.train.data.prepared.preparing import Preparing, preparing
from composer.train.data.prepared.text_cache import DEFAULT, TextCache, cache_of, key_of, state_of
from composer.train.data.prepared.text_stream import Scan, scan, texts_of
from composer.train.data.prepared.token_files import (
    FILES,
    INDEX,
    PreparedText,
    is_prepared,
    little,
    open_tokens,
    write_tokens,
)
from composer.train.data.prepared.token_streams import TokenStreams
from composer.train.data.text import HELD_OUT, TextData, fingerprint_of, joined
from composer.train.data.tokenizer_files import tokenizer_from_json
from composer.train.data.tokenizer_kinds import SIZED
from composer.train.data.tokenizers import CharacterTokenizer, MarkedTokenizer, Tokenizer
from composer.train.errors import TrainingError
from composer.train.input_files import mode_of, reason_of, typed_json
from composer.train.run import disk
from composer.train.settings import MAX_DATA_BYTES


@dataclass(frozen=True)
class ScannedTexts:
    """The texts of some sources: what they hold, without holding them."""

    sources: Sequence[StrPath]
    scan: Scan
    cache: TextCache | None
    show: Preparing

    @property
    def sha256(self) -> str:
        """The checksum of the texts, as that of a run."""
        return fingerprint_of([document.sha256 for document in self.scan.documents])

    @property
    def kept(self) -> TextCache | None:
        """The cache, if the texts are large enough for it."""
        return self.cache if self.scan.bytes >= SMALL else None

    def texts(self) -> Iterator[str]:
        """Yield all texts, one behind the other, piece by piece."""
        for document in self.scan.documents:
            for text in texts_of(document):
                yield text
                self.show.advance(len(text))

    def tokenizer(self, name: str, size: int | None = None) -> Tokenizer:
        """Return a tokenizer made from the texts, or the one that was.

        Args:
            name: characters, bytes, bpe, wordpiece or words.
            size: The size of the vocabulary, for those that can have several.

        Raises:
            TrainingError: There is no such tokenizer, the size does not fit, or a file has changed.
        """
        chosen = checked_size(name, size)
        if name == "characters":
            return CharacterTokenizer(tuple(self.scan.alphabet))
        if name not in SIZED:
            return tokenizer_of(name, self.texts)
        key = key_of("tokenizer", token_files.FORMAT, self.sums, name, chosen, tokenizers.__version__)
        if self.kept is not None and (found := self.kept.noted(key)) is not None:
            with suppress(TrainingError):
                return tokenizer_from_json(found.get("tokenizer"), self.kept.note(key))
        self.show.begin(f"learning {name}", self.scan.characters * (2 if name == "wordpiece" else 1))
        made = tokenizer_of(name, self.texts, size=chosen)
        if self.kept is not None:
            self.kept.remember(key, {"tokenizer": made.to_json()})
        return made

    @property
    def sums(self) -> list[str]:
        """The checksum of each text."""
        return [document.sha256 for document in self.scan.documents]

    def tokens(self, tokenizer: Tokenizer, weights: Sequence[float] = ()) -> TextData:
        """Return the texts as tokens, with the last tenth of each held out, as `tokenize` does.

        Args:
            tokenizer: The tokenizer; of one with marks, that of the text.
            weights: A weight for each source, by which windows are drawn, as for `mixed`; nothing where they are equally likely.

        Raises:
            TrainingError: A file has changed, a character has no token, or the tokens cannot be written; or as `mixed`.
        """
        found = self._tokens(tokenizer)
        if not weights:
            return found
        paths = [document.path for document in self.scan.documents]
        return mixed(found, weights, documents=counts_by_source(self.sources, paths))

    def _tokens(self, tokenizer: Tokenizer) -> TextData:
        if self.scan.bytes < SMALL:
            return self._in_memory(tokenizer)
        if self.cache is None or not writable(self.cache):
            return self._in_temporary_files(tokenizer)
        return self._in_cache(tokenizer, self.cache)

    def write(self, tokenizer: Tokenizer, folder: Path) -> PreparedText:
        """Write the texts as tokens into a folder, which appears once all is in it.

        Args:
            tokenizer: The tokenizer; of one with marks, that of the text.
            folder: The folder, of which there is none yet.

        Raises:
            TrainingError: There is a folder, or it cannot be written; or as `tokens`.
        """
        refuse_folder(folder)
        self._write(tokenizer, folder)
        return open_tokens(folder, path=folder, whole=True)

    def streams(self, tokenizer: Tokenizer) -> TokenStreams:
        """Return the tokens as streams."""
        self.show.begin("tokenizing", self.scan.characters)
        return TokenStreams(self.scan.documents, tokenizer, self.show.advance)

    def _in_memory(self, tokenizer: Tokenizer) -> TextData:
        streams = self.streams(tokenizer)
        return self._data(streams, *(joined(stream(), streams.tokenizer) for stream in (streams.train, streams.validation)))

    def _in_temporary_files(self, tokenizer: Tokenizer) -> TextData:
        """Return tokens in files that end with the process."""
        streams = self.streams(tokenizer)
        dtype = little(dtype_of(streams.tokenizer.size))
        train = in_temporary_file(streams.train(), dtype)
        return self._data(streams, train, in_temporary_file(streams.validation(), dtype))

    def _in_cache(self, tokenizer: Tokenizer, cache: TextCache) -> TextData:
        plain = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
        content = hashlib.sha256(json.dumps(plain.to_json(), sort_keys=True).encode("utf-8")).hexdigest()
        key = key_of("tokens", token_files.FORMAT, HELD_OUT, self.sums, content, tokenizers.__version__)
        folder = cache.tokens(key)
        if folder.is_dir():
            with suppress(TrainingError, OSError):
                found = opened_again(folder, cache, path=self.sources)
                if found.data.sha256 == self.sha256 and same_tokenizer(found.tokenizer, plain):
                    os.utime(folder)
                    return found.data
            with suppress(OSError):
                disk.remove(folder)
        self._write(tokenizer, folder)
        if (state := folder_state(folder, settled=True)) is not None:
            cache.remember(key_of("whole", state), {})
        cache.make_room(key)
        return open_tokens(folder, path=self.sources, whole=True).data

    def _write(self, tokenizer: Tokenizer, folder: Path) -> None:
        aside = folder.with_name(f"{disk.ASIDE}{folder.name}-{os.getpid()}")
        try:
            disk.remove(aside)
            disk.make_folder(aside)
            write_tokens(aside, self.streams(tokenizer), text=self.sha256)
            disk.rename(aside, folder)
        except OSError as error:
            if not is_prepared(folder):  # unless another process has written the same in the meantime
                hint = "free space, or choose another folder; COMPOSER_CACHE names that of the cache"
                raise TrainingError(f"cannot write {error.filename or folder}: {reason_of(error)}", hint=hint) from None
        finally:
            with suppress(OSError):
                disk.remove(aside)

    def _data(self, streams: TokenStreams, train: Ids, validation: Ids) -> TextData:
        first, *more = self.sources
        several = len(self.scan.documents) > 1
        return TextData(
            path=Path(first),
            sha256=self.sha256,
            train=train,
            validation=validation,
            characters=streams.characters,
            bytes=streams.bytes,
            more_paths=tuple(map(Path, more)),
            train_ends=tuple(streams.train_ends) if several else (),
            validation_ends=tuple(streams.validation_ends) if several else (),
        )


def scanned(sources: StrPath | Sequence[StrPath], *, max_bytes: int, cache: TextCache | None, show: Preparing) -> ScannedTexts:
    """Return what some sources hold, from the cache if none of their files has changed since.

    Args:
        sources: The paths and patterns, as for `read_documents`.
        max_bytes: The largest size of all texts together, decompressed.
        cache: The cache; None without one.
        show: Shows the progress.

    Raises:
        TrainingError: As `read_documents`.
    """
    sources = sources_of(sources)
    files: list[Path] = []

    def look(path: Path, bound: ReadLimit) -> tuple[int, Path]:
        files.append(path)
        return 0, path

    documents_in(sources, look, max_bytes=max_bytes)
    key = None
    if cache is not None and (state := state_of(files)) is not None:
        key = key_of("scan", token_files.FORMAT, max_bytes, [str(source) for source in sources], state)
        if (found := cache.noted(key)) is not None and (known := scan_from(found)) is not None:
            return ScannedTexts(sources, known, cache, show)
    packed = any(path.name.endswith(COMPRESSED_SUFFIXES) for path in files)
    show.begin("reading", 0 if packed else sum(path.stat().st_size for path in files if path.is_file()))
    made = scan(sources, max_bytes=max_bytes, advance=show.advance)
    if cache is not None and key is not None and made.bytes >= SMALL and state_of(files) == state:
        cache.remember(key, asdict(made))
    return ScannedTexts(sources, made, cache, show)


def scan_from(values: Mapping[str, object]) -> Scan | None:
    """Return a scan that was noted; None if it has another form."""
    with suppress(TrainingError):
        return typed_json(json.dumps(values).encode("utf-8"), Scan, Path(INDEX))
    return None


def folder_state(folder: Path, *, settled: bool = False) -> list[list[object]] | None:
    """Return what changes whenever a file of a prepared text changes."""
    return state_of([folder / name for name in (INDEX, *FILES)], settled=settled)


def opened_again(folder: Path, cache: TextCache | None, *, path: StrPath | Sequence[StrPath]) -> PreparedText:
    """Return a prepared text, of which every byte is compared unless that was done before and no file has changed since.

    Raises:
        TrainingError: It is none, or is damaged.
    """
    state = None if cache is None else folder_state(folder)
    key = key_of("whole", state)
    if cache is not None and state is not None and cache.noted(key) is not None:
        return open_tokens(folder, path=path, whole=True)
    found = open_tokens(folder, path=path)
    large = found.data.train.nbytes + found.data.validation.nbytes >= SMALL
    if cache is not None and state is not None and large and folder_state(folder) == state:
        cache.remember(key, {})
    return found


def writable(cache: TextCache) -> bool:
    """Return whether tokens can be written into a cache, such as in a home folder that is there."""
    try:
        disk.make_folder(cache.folder / "tokens")
    except OSError:
        return False
    return os.access(cache.folder / "tokens", os.W_OK | os.X_OK)


def refuse_folder(folder: Path) -> None:
    """Raise `TrainingError` if there is something in the place of a folder that is to be written."""
    if mode_of(folder):
        raise TrainingError(f"{folder} is there already", hint="choose another folder, or remove it first")


def text_of_run(
    sources: Sequence[StrPath],
    tokenizer: Tokenizer,
    *,
    sha256: str,
    max_bytes: int,
    weights: Sequence[float] = (),
    cache: StrPath = DEFAULT,
    show: Preparing | None = None,
) -> TextData | None:
    """Return the text of a run as tokens again; None if the sources are another text.

    Args:
        sources: The paths and patterns, or the folder of a prepared text.
        tokenizer: The tokenizer of the run.
        sha256: The checksum of the text of the run.
        max_bytes: The largest size of all texts together, decompressed.
        weights: The weight of each source in the run, if they have any.
        cache: The folder of the cache, as for `prepare`.
        show: The progress display; by default, a bar or lines on standard error.

    Raises:
        TrainingError: A text cannot be read, or was prepared with another tokenizer.
    """
    if any(map(is_prepared, sources)):
        found = open_together(sources, cache=cache, weights=weights)
        if found.data.sha256 != sha256:
            return None
        if not same_tokenizer(found.tokenizer, tokenizer):
            raise TrainingError(f"{sources[0]} was prepared with another tokenizer than that of the run", hint="name the text")
        return found.data
    with show or preparing() as shown:
        texts = scanned(sources, max_bytes=max_bytes, cache=cache_of(cache), show=shown)
        return texts.tokens(tokenizer, weights) if texts.sha256 == sha256 else None


def open_together(folders: Sequence[StrPath], *, cache: StrPath = DEFAULT, weights: Sequence[float] = ()) -> PreparedText:
    """Return one or several prepared texts as one.

    Args:
        folders: Their folders.
        cache: The folder of the cache, as for `open_prepared`.
        weights: A weight for each, by which windows are drawn, as for `mixed`; nothing where they are equally likely.

    Raises:
        TrainingError: One is none or is damaged, or they have different tokenizers.
    """
    for folder in folders:
        if not is_prepared(folder):
            raise TrainingError(
                f"{folder} is no prepared text, and {next(filter(is_prepared, folders))} is one",
                hint="prepare it too: arco data prepare, with the same tokenizer",
            )
    parts = [open_prepared(folder, cache=cache) for folder in folders]
    found = joined_texts(parts, folders)
    if not weights:
        return found
    documents = [max(len(part.data.train_ends), 1) for part in parts]
    return PreparedText(found.tokenizer, mixed(found.data, weights, documents=documents))


def prepare(
    sources: StrPath | Sequence[StrPath],
    tokenizer: Tokenizer | str = "characters",
    *,
    vocab_size: int | None = None,
    folder: StrPath | None = None,
    max_bytes: int = MAX_DATA_BYTES,
    cache: StrPath = DEFAULT,
    show: Preparing | None = None,
) -> PreparedText:
    """Return texts as tokens that stay in files, and so take no memory; the second time, they are found again.

    They are the same as those of `tokenize`. Texts of less than 1 MiB stay in memory.

    Args:
        sources: The paths and patterns, as for `read_documents`.
        tokenizer: The tokenizer, or the name of one that is made from the texts, as for `make_tokenizer`.
        vocab_size: The size of the vocabulary of one that is made.
        folder: A folder to write the tokens to; by default, they are in the cache.
        max_bytes: The largest size of all texts together, decompressed.
        cache: The folder of the cache; `"default"` is that of the environment variable `COMPOSER_CACHE`, else the user's, and
            `"off"` is none: the tokens are in temporary files.
        show: The progress display; by default, a bar or lines on standard error.

    Raises:
        TrainingError: A text or the tokenizer cannot be used, or something cannot be written.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import prepare
        >>> written = Path("hamlet.txt").write_text("to be or not to be\\n" * 20)
        >>> text = prepare("hamlet.txt", "bpe", vocab_size=270, folder="hamlet-tokens")
        >>> text.tokenizer.size, len(text.data.train), text.data.train.itemsize
        (265, 126, 2)
    """
    if folder is not None:
        refuse_folder(Path(folder))
    with show or preparing() as shown:
        texts = scanned(sources, max_bytes=max_bytes, cache=cache_of(cache), show=shown)
        made = texts.tokenizer(tokenizer, vocab_size) if isinstance(tokenizer, str) else tokenizer
        if folder is not None:
            return PreparedText(made, texts.write(made, Path(folder)).data)
        return PreparedText(made, texts.tokens(made))


def open_prepared(folder: StrPath, *, cache: StrPath = DEFAULT) -> PreparedText:
    """Return the prepared text in a folder, which `prepare` or `arco data prepare` wrote. Every byte of it is compared with its
    checksum, but not again while no file changes.

    Args:
        folder: The folder.
        cache: The folder of the cache, as for `prepare`, which notes that a folder has been compared.

    Raises:
        TrainingError: It is no prepared text, or is damaged.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import open_prepared, prepare
        >>> written = Path("hamlet.txt").write_text("to be or not to be\\n" * 20)
        >>> text = prepare("hamlet.txt", "bytes", folder="hamlet-tokens")
        >>> bytes(open_prepared("hamlet-tokens").data.train[:5])
        b'to be'
    """
    return opened_again(Path(folder), cache_of(cache), path=folder)
