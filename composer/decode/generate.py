"""Sampling: continue a prompt token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from composer.decode.batches import batches
from composer.decode.encoder_inputs import EncoderInputs, check_encoder_inputs, rows_of
from composer.decode.errors import DecodeError
from composer.decode.reading import Reading, uncached
from composer.decode.request import Refuse, Request, Slide, check_length, latest
from composer.decode.sample import draw
from composer.decode.speculate import Draft, drafted_continuation
from composer.language.wording import counted


def generate(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    request: Request,
    *,
    encoder_inputs: EncoderInputs | None = None,
    seed: int | Sequence[int] = 0,
    reading: Reading = uncached,
    batch_size: int | None = None,
    draft: Draft | None = None,
) -> list[list[int]]:
    """Return the tokens that follow each prompt, the same as for the prompt alone.

    Prompts form batches without padding, whatever the model: those of different lengths are read together as far as the shortest
    goes, and a longer one is then given its own next tokens in place of drawn ones. For a model with an encoder, a prompt is the
    start of the target, usually only a start token.

    Args:
        model: A compiled recipe with a generative task.
        prompts: Tokens to continue, one list per text.
        request: How many tokens to generate, how to sample them, and when to stop.
        encoder_inputs: The other inputs of the model by name, such as `source` [B, S] or `image`, with a row for each prompt.
        seed: Random seed of the samples of each prompt; one number is that of the first prompt, and the next has the next one.
        reading: `cached` reads each token once; `uncached` reads the whole text again at each step.
        batch_size: Maximum number of prompts that are continued together; None for no maximum.
        draft: A model that drafts tokens. Each prompt is then continued by itself, and both models read each token once, whatever
            `reading` says.

    Returns:
        The new tokens of each text, without the prompt and the stop token.

    Raises:
        DecodeError: A prompt is empty or too long for the context, or `encoder_inputs` does not fit the model.

    Examples:
        >>> import composer
        >>> from composer.decode import GREEDY, Request, cached, generate
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> texts = generate(model, [[1, 2, 3]], Request(max_new_tokens=4, sampling=GREEDY), reading=cached)
        >>> len(texts[0])
        4
    """
    check_encoder_inputs(model, encoder_inputs or {}, len(prompts))
    if batch_size is not None and batch_size < 1:
        raise DecodeError(f"the batch size is {batch_size}; it must be at least 1 prompt")
    seeds = [seed + row for row in range(len(prompts))] if isinstance(seed, int) else seed
    if len(seeds) != len(prompts):
        raise DecodeError(f"{counted(len(prompts), 'prompt')} cannot have {counted(len(seeds), 'random seed')}")
    new, lengths = request.max_new_tokens, [len(prompt) for prompt in prompts]
    for length in sorted(set(lengths)):
        check_length(length, new, request.limit)
    answers: list[list[int]] = [[] for _ in prompts]
    if draft is not None:
        for row, prompt in enumerate(prompts):
            given = rows_of(model, encoder_inputs or {}, [row])
            answers[row] = list(stream(model, prompt, request, encoder_inputs=given, seed=seeds[row], draft=draft))
        return answers
    for rows in batches(lengths, new=new, aligned=aligned_up_to(model, request.limit), most=batch_size):
        open_rows, shortest = set(rows), lengths[rows[0]]
        given = rows_of(model, encoder_inputs or {}, rows)
        generators = [torch.Generator().manual_seed(seeds[row]) for row in rows]
        steps = continuations(model, [prompts[row] for row in rows], request, given, generators, reading)
        for length, tokens in enumerate(steps, shortest):
            for row, token in zip(rows, tokens.tolist(), strict=True):
                if row not in open_rows or length < lengths[row]:
                    continue
                if token not in request.stop:
                    answers[row].append(token)
                if token in request.stop or len(answers[row]) == new:
                    open_rows.remove(row)
            if not open_rows:
                break
    return answers


def aligned_up_to(model: nn.Module, limit: Refuse | Slide | None) -> int | None:
    """Return the length up to which prompts of different lengths may be in one batch; None for any.

    A prefix whose tokens see each other has to be read in one call, and a longer prompt slides before it is read.
    """
    layout = getattr(model, "cache_layout", None)
    if layout is not None and layout.prefixes:
        return 0
    return limit.length if isinstance(limit, Slide) else None


def stream(
    model: nn.Module,
    prompt: Sequence[int],
    request: Request,
    *,
    encoder_inputs: EncoderInputs | None = None,
    seed: int = 0,
    reading: Reading = uncached,
    draft: Draft | None = None,
) -> Iterator[int]:
    """Yield the tokens that follow one prompt, each as soon as it is drawn.

    Args:
        model: A compiled recipe with a generative task.
        prompt: Tokens to continue.
        request: How many tokens to generate, how to sample them, and when to stop.
        encoder_inputs: The other inputs of the model by name, with one row.
        seed: Random seed of the samples.
        reading: `cached` reads each token once; `uncached` reads the whole text again at each step.
        draft: A model that drafts tokens; both models then read each token once, whatever `reading` says.

    Raises:
        DecodeError: The prompt is empty or too long for the context, or `encoder_inputs` does not fit the model.

    Examples:
        >>> import composer
        >>> from composer.decode import Request, cached, stream
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> len(list(stream(model, [1, 2, 3], Request(max_new_tokens=4), reading=cached)))
        4
    """
    check_encoder_inputs(model, encoder_inputs or {}, 1)
    generator, given = torch.Generator().manual_seed(seed), encoder_inputs or {}
    if draft is not None:
        check_encoder_inputs(draft.model, given, 1)
        found = drafted_continuation(model, prompt, request, given, generator, draft)
    else:
        found = (int(tokens[0]) for tokens in continuations(model, [prompt], request, given, [generator], reading))
    for token in found:
        if token in request.stop:
            return
        yield token


@torch.no_grad()  # as a decorator, it restores autograd's mode at every yield
def continuations(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    request: Request,
    encoder_inputs: EncoderInputs,
    generators: Sequence[torch.Generator],
    reading: Reading,
) -> Iterator[Tensor]:
    """Yield the next tokens [B] of prompts, from the end of the shortest to `max_new_tokens` beyond the longest, its own ones
    inside a longer prompt; stop tokens do not end it.
    """
    device = next(model.parameters()).device
    encoder_inputs = {name: value.to(device) for name, value in encoder_inputs.items()}
    lengths = [len(prompt) for prompt in prompts]
    shortest, longest = min(lengths), max(lengths)
    check_length(shortest, request.max_new_tokens, request.limit)
    check_length(longest, request.max_new_tokens, request.limit)
    texts = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], dtype=torch.int64)  # [B, longest]
    sequence = texts[:, :shortest]  # [B, T]; grows
    left = longest - shortest + request.max_new_tokens
    was_training = model.training
    model.eval()
    try:
        while left:
            window = latest(sequence, request.limit)
            room = left if not isinstance(request.limit, Slide) else request.limit.length - window.shape[1] + 1
            with reading(model, encoder_inputs, window.shape[1] + min(left, room) - 1) as step:
                unread = window
                for _ in range(min(left, room)):
                    logits = step(unread.to(device))[:, : request.vocabulary]
                    length = sequence.shape[1]
                    written = [row for row, prompt in enumerate(lengths) if prompt <= length]
                    if len(written) == len(lengths):
                        unread = draw(logits, request.sampling, generators, sequence)[:, None]  # [B, 1]
                    else:
                        unread = texts[:, length : length + 1].clone()
                        own = [generators[row] for row in written]
                        unread[written, 0] = draw(logits[written], request.sampling, own, sequence[written])
                    sequence = torch.cat([sequence, unread], dim=1)
                    left -= 1
                    yield unread[:, 0]
    finally:
        model.train(was_training)
