"""The tasks of models, with the inputs and outputs that each requires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Task:
    """Names and types, of which an input may have several, `a | b`; axes of one name have one length."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    targets: str = ""
    """The entry of a batch that holds what is asked for, beside the model's inputs."""
    streams: int = 0
    """How many inputs there are at least, whatever their names."""
    text: str = ""
    """The input that the model generates, token by token, along its last axis."""

    @property
    def continues(self) -> bool:
        """Whether it continues a text, and reads nothing else."""
        return bool(self.text) and {*self.inputs} == {self.text}

    @property
    def classifies(self) -> bool:
        """Whether its logits are over classes rather than over the vocabulary."""
        return self.outputs.get("logits", "").endswith("classes]")


TOKENS = {"tokens": "int[batch, time]"}
SOURCE = {"source": "int[batch, source_time]", "target": "int[batch, time]"}
SPEECH = {"features": "float[batch, mels, frames] | float[batch, samples]"}
"""Energies in bands of frequency, or the wave itself."""
IMAGE = {"image": "float[batch, channels, height, width]"}
EACH_WORD = {"logits": "float[batch, time, vocab]"}
EACH_CLASS = {"logits": "float[batch, classes]"}

TASKS: Mapping[str, Task] = {
    "causal_lm": Task(TOKENS, EACH_WORD, "targets", text="tokens"),
    "masked_lm": Task(TOKENS, EACH_WORD, "labels"),
    "seq2seq_lm": Task(SOURCE, EACH_WORD, "targets", text="target"),
    "denoising": Task(SOURCE, EACH_WORD, "targets", text="target"),
    "image_to_text": Task({**IMAGE, **TOKENS}, EACH_WORD, "targets", text="tokens"),
    "speech_to_text": Task({**SPEECH, **TOKENS}, EACH_WORD, "targets", text="tokens"),
    "sequence_classification": Task(TOKENS, EACH_CLASS, "label"),
    "token_classification": Task(TOKENS, {"logits": "float[batch, time, classes]"}, "labels"),
    "image_classification": Task(IMAGE, EACH_CLASS, "label"),
    "contrastive": Task(outputs={**dict.fromkeys(("a", "b"), "float[batch, dim]"), "scale": "float[]"}, streams=2),
    "encoder": Task(),
}
