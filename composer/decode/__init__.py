"""Text generation with a trained model: sampling, beam search, and sessions with a KV cache."""

from composer.decode.beam import Hypothesis, Search, beam_search
from composer.decode.encoder_inputs import EncoderInputs
from composer.decode.errors import DecodeError
from composer.decode.fill import fill
from composer.decode.generate import (
    DecodeStep,
    Reading,
    Refuse,
    Request,
    Slide,
    cached,
    generate,
    stream,
    uncached,
)
from composer.decode.insight import AttentionMap, attention_maps, logit_lens
from composer.decode.next_token import next_token
from composer.decode.prepack import prepacked
from composer.decode.sample import GREEDY, Sampling, draw, probabilities
from composer.decode.session import Session, session

__all__ = [
    "GREEDY",
    "AttentionMap",
    "DecodeError",
    "DecodeStep",
    "EncoderInputs",
    "Hypothesis",
    "Reading",
    "Refuse",
    "Request",
    "Sampling",
    "Search",
    "Session",
    "Slide",
    "attention_maps",
    "beam_search",
    "cached",
    "draw",
    "fill",
    "generate",
    "logit_lens",
    "next_token",
    "prepacked",
    "probabilities",
    "session",
    "stream",
    "uncached",
]
