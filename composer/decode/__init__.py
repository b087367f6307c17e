"""Decoding: text out of a trained model."""

from composer.decode.generate import Reading, Refuse, Request, Slide, Step, cached, generate, stream, uncached
from composer.decode.problem import DecodeError
from composer.decode.sample import GREEDY, Sampling, draw, probabilities
from composer.decode.session import Session, session

__all__ = [
    "GREEDY",
    "DecodeError",
    "Reading",
    "Refuse",
    "Request",
    "Sampling",
    "Session",
    "Slide",
    "Step",
    "cached",
    "draw",
    "generate",
    "probabilities",
    "session",
    "stream",
    "uncached",
]
