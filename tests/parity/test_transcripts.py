"""A folder of wav2vec 2.0 that transformers wrote, with its vocabulary of characters, transcribes as it does there."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Wav2Vec2CTCTokenizer, Wav2Vec2FeatureExtractor

import composer
from composer.evaluate import transcribe
from composer.published.opened import open_published
from composer.train import MarkedTokenizer, TrainingError, examples_of, read_table
from composer.train.data.marks import BLANK
from tests.parity.families import FAMILIES
from tests.parity.reference import perturbed

WORDS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ'"]


@torch.no_grad()
def test_a_published_folder_transcribes_as_transformers_does(tmp_path: Path) -> None:
    """From the file to the text; and its tokenizer reads transcripts, but for letters that it does not know."""
    torch.manual_seed(0)
    reference = perturbed(FAMILIES["wav2vec2"].small(vocab_size=len(WORDS)))
    reference.lm_head.weight.mul_(20)  # so that the tokens vary
    reference.lm_head.bias[1:4] = -1e4  # what transformers writes out, and nobody says: <s>, </s>, <unk>
    reference.save_pretrained(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({word: index for index, word in enumerate(WORDS)}))
    theirs = Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"))
    sound = np.random.default_rng(0).integers(-9000, 9000, 900).astype("<i2")
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(sound.tobytes())
    read = Wav2Vec2FeatureExtractor(do_normalize=True)(sound / 2**15, sampling_rate=16000, return_tensors="pt")
    expected = theirs.decode(reference(read.input_values).logits[0].argmax(-1), clean_up_tokenization_spaces=False)
    opened = open_published(tmp_path, load=composer.load)
    (found,) = transcribe(opened.model, opened.tokenizer, [tmp_path / "sound.wav"])
    assert len(expected) > 5
    assert found.strip() == expected
    assert opened.tokenizer.encode("HE SAID 'NO'") == theirs.encode("HE SAID 'NO'")
    tokenizer = MarkedTokenizer(opened.tokenizer.to_train(), (BLANK,))
    assert tokenizer.decode(tokenizer.encode("HELLO YOU")) == "HELLO YOU"
    table = tmp_path / "table.csv"
    table.write_text("samples,transcript\nsound.wav,AB\nsound.wav,Ab\n")
    with pytest.raises(TrainingError, match=r"table\.csv, line 3: the tokenizer has no token for 'b'"):
        examples_of(read_table([table]), opened.model.program, tokenizer, seq_len=16)
