"""Text files, windows and the held-out text."""

from __future__ import annotations

import math
import os
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from composer.train import ByteTokenizer, TrainingError, characters_of, objective_of, read_text, split, tokenize, validate
from composer.train.data.text import check_length, draw_batch, held_out_batches
from composer.train.settings import MAX_DATA_BYTES


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b" \n ", "is empty"), (b"fine\nstill\n\xff\xfe", "line 3 has the byte 0xff")],
)
def test_a_file_without_usable_text_is_refused(tmp_path, content, message):
    """The message names the file, and the line where there is one."""
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=message) as error:
        read_text(path)
    assert "text.txt" in str(error.value)


@pytest.mark.parametrize(("encoding", "hint"), [("utf-16", "`iconv -f UTF-16"), ("latin1", "if it is Latin-1")])
def test_a_text_in_another_encoding_is_refused_with_what_converts_it(tmp_path, encoding, hint):
    """UTF-16 tells by its first bytes."""
    path = tmp_path / "text.txt"
    path.write_bytes("für".encode(encoding))
    with pytest.raises(TrainingError) as error:
        read_text(path)
    assert error.value.hint.startswith(hint) and "-t UTF-8" in error.value.hint


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    """One line each."""
    for path in (tmp_path / "absent.txt", tmp_path):
        with pytest.raises(TrainingError, match="cannot read"):
            read_text(path)


@pytest.mark.skipif(os.name == "nt", reason="there are neither devices nor pipes in folders")
def test_what_is_not_a_file_is_not_waited_for(tmp_path):
    """A device that never ends, and a pipe that nobody writes."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TrainingError, match=r"cannot read .*pipe: it is a pipe") as error:
        read_text(tmp_path / "pipe")
    assert "write its content to a file" in error.value.hint
    for device in ("/dev/zero", "/dev/null"):
        with pytest.raises(TrainingError, match=f"cannot read {device}: it is a device"):
            read_text(device)
    (tmp_path / "link").symlink_to("/dev/zero")
    with pytest.raises(TrainingError, match="it is a device"):
        read_text(tmp_path / "link")


def test_a_text_has_a_largest_size(tmp_path):
    """Which the message names, and the hint how to raise; a text of just that size is read."""
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(MAX_DATA_BYTES + 1)
    with pytest.raises(TrainingError, match=r"large.txt has more than 1,073,741,824 bytes") as error:
        read_text(path)
    assert "--max-data-bytes" in error.value.hint
    path.write_bytes(b"0123456789")
    assert read_text(path, max_bytes=10) == "0123456789"
    with pytest.raises(TrainingError, match="has more than 9 bytes"):
        read_text(path, max_bytes=9)


@pytest.mark.parametrize("name", ["bz2", "lzma"])
def test_a_compressed_text_is_told(tmp_path, name):
    """By what it is compressed with, and what to do."""
    (tmp_path / "text.packed").write_bytes(import_module(name).compress(b"to be or not to be"))
    with pytest.raises(TrainingError, match=r"text.packed is compressed with \w+$") as error:
        read_text(tmp_path / "text.packed")
    assert error.value.hint == "decompress it first"


def test_a_byte_order_mark_is_no_text(tmp_path):
    """And line ends stay as they are."""
    (tmp_path / "t.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert read_text(tmp_path / "t.txt") == "one\r\ntwo"


def test_a_text_shorter_than_the_context_is_refused(tmp_path):
    """With both numbers."""
    data = tokenize("x" * 100, ByteTokenizer(), path=tmp_path / "short.txt")
    check_length(data, 89)
    with pytest.raises(TrainingError, match="has 90 tokens to train on; a sequence length of 90 needs 91"):
        check_length(data, 90)


def test_every_start_is_drawn_and_targets_follow_their_tokens(data):
    """Windows lie inside the training text; with a seed they are the same again."""
    generator = torch.Generator().manual_seed(1)
    drawn = draw_batch(data, batch_size=20000, seq_len=7, generator=generator)
    stream = torch.from_numpy(data.train.astype(np.int64))
    windows = {tuple(window) for window in stream.unfold(0, 8, 1).tolist()}
    seen = {(*tokens, targets[-1]) for tokens, targets in zip(drawn["tokens"].tolist(), drawn["targets"].tolist(), strict=True)}
    assert torch.equal(drawn["tokens"][:, 1:], drawn["targets"][:, :-1])
    assert seen <= windows
    assert tuple(stream[:8].tolist()) in seen
    assert tuple(stream[-8:].tolist()) in seen
    again = draw_batch(data, batch_size=20000, seq_len=7, generator=torch.Generator().manual_seed(1))
    assert torch.equal(again["tokens"], drawn["tokens"])


@pytest.mark.parametrize("seq_len", [1, 6, 7, 500, 10_000])
def test_each_held_out_token_is_a_target_once_and_in_order(data, seq_len):
    """Whole windows, the rest, and a context longer than the text; the first follows the training text."""
    batches = list(held_out_batches(data, batch_size=4, seq_len=seq_len))
    targets = torch.cat([batch["targets"].flatten() for batch in batches])
    tokens = torch.cat([batch["tokens"].flatten() for batch in batches])
    assert targets.tolist() == data.validation.tolist()
    assert tokens.tolist() == [int(data.train[-1]), *data.validation[:-1].tolist()]


class Uniform(nn.Module):
    """Thinks every token equally likely."""

    def __init__(self, vocab):
        super().__init__()
        self.recipe = SimpleNamespace(name="uniform", task="causal_lm")
        self.scores = nn.Parameter(torch.zeros(vocab))

    def forward(self, tokens):
        return SimpleNamespace(logits=self.scores.expand(*tokens.shape, -1), losses={})


class Restless(Uniform):
    """Counts its calls in a buffer, also in evaluation, and draws a random number in each."""

    def __init__(self, vocab):
        super().__init__(vocab)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, tokens):
        self.calls += 1
        noise = torch.rand(tokens.shape[-1], 1)
        return SimpleNamespace(logits=self.scores.expand(*tokens.shape, -1) * (1 + noise) + self.calls, losses={})


def test_a_validation_leaves_a_model_and_the_random_numbers_as_they_were(data, tokenizer):
    """So that it gives the same again, and the steps after it are those of a run that was interrupted in it."""
    model, seen = Restless(tokenizer.size).train(), []
    torch.manual_seed(4)
    state = torch.get_rng_state()
    for _ in range(2):
        seen.append(validate(model, data, objective_of("causal_lm", tokenizer), batch_size=3, seq_len=8))
        assert torch.equal(torch.get_rng_state(), state) and model.calls == 0 and model.training
    assert seen[0] == seen[1]


def test_losses_per_character_and_per_byte_compare_across_tokenizers(tmp_path):
    """Of an even guess both follow from the lengths: 3 bytes to each of these characters."""
    text = "日本語猫" * 100
    held_out = split(text)[1]
    for tokenizer, tokens in ((ByteTokenizer(), 3 * len(held_out)), (characters_of(text), len(held_out))):
        data = tokenize(text, tokenizer, path=tmp_path)
        result = validate(Uniform(tokenizer.size), data, objective_of("causal_lm", tokenizer), batch_size=3, seq_len=8)
        nats = math.log(tokenizer.size)
        assert result.tokens == tokens
        assert result.per_token == pytest.approx(nats)
        assert result.per_character == pytest.approx(nats * tokens / len(held_out))
        assert result.per_byte == pytest.approx(nats * tokens / (3 * len(held_out)))
