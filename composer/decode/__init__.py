"""Decoding: text out of a trained model."""

from composer.decode.beam import Found, Search, beam_search
from composer.decode.errors import DecodeError
from composer.decode.generate import Beside, Reading, Refuse, Request, Slide, Step, cached, generate, stream, uncached
from composer.decode.sample import GREEDY, Sampling, draw, probabilities
from composer.decode.session import Session, session

__all__ = [
    "GREEDY",
    "Beside",
    "DecodeError",
    "Found",
    "Reading",
    "Refuse",
    "Request",
    "Sampling",
    "Search",
    "Session",
    "Slide",
    "Step",
    "beam_search",
    "cached",
    "draw",
    "generate",
    "probabilities",
    "session",
    "stream",
    "uncached",
]
