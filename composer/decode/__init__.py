"""Text generation with a trained model: sampling, beam search, and sessions with a KV cache."""

from composer.decode.beam import Hypothesis, Search, beam_search
from composer.decode.encoder_inputs import EncoderInputs
from composer.decode.errors import DecodeError
from composer.decode.fill import fill
from composer.decode.generate import (
    Refuse,
    Request,
    Slide,
    generate,
    stream,
)
from composer.decode.next_token import next_token
from composer.decode.prepack import prepacked
from composer.decode.reading import DecodeStep, Reading, cached, uncached
from composer.decode.sample import GREEDY, Sampling, draw, probabilities
from composer.decode.session import Session, session

__all__ = [
    "GREEDY",
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
    "beam_search",
    "cached",
    "draw",
    "fill",
    "generate",
    "next_token",
    "prepacked",
    "probabilities",
    "session",
    "stream",
    "uncached",
]
