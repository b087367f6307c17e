"""Text generation with a trained model: sampling, beam search, and sessions with a KV cache."""

from composer.decode.alignments import collapsed
from composer.decode.beam import Hypothesis, Search, beam_search
from composer.decode.encoder_inputs import EncoderInputs
from composer.decode.errors import DecodeError, PromptCacheError
from composer.decode.fill import fill
from composer.decode.generate import generate, stream
from composer.decode.insight import AttentionMap, attention_maps, logit_lens
from composer.decode.next_token import next_token
from composer.decode.prepack import prepacked
from composer.decode.prompt_caches.prompt_cache import PromptCache
from composer.decode.reading import DecodeStep, Reading, cached, compiled, uncached
from composer.decode.request import Refuse, Request, Slide
from composer.decode.sample import GREEDY, Sampling, draw, probabilities
from composer.decode.session import Session, session
from composer.decode.speculate import Draft

__all__ = [
    "GREEDY",
    "AttentionMap",
    "DecodeError",
    "DecodeStep",
    "Draft",
    "EncoderInputs",
    "Hypothesis",
    "PromptCache",
    "PromptCacheError",
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
    "collapsed",
    "compiled",
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
