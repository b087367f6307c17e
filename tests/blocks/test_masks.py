"""Masks: the predicate, its count, its text, and every way to execute it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

from blocks.core import NodeRef
from blocks.masks.block_masks import BlockWindow, Chunk, Dilated, Strided
from blocks.masks.count import visible
from blocks.masks.data_masks import Documents, GlobalTokens, Pairs, Prefix, Valid
from blocks.masks.mask import Mask, Pair
from blocks.masks.operators import And, Not, Or
from blocks.masks.plans import kept, plan
from blocks.masks.position_masks import Causal, Full, GlobalFirst, GlobalLast, Local, Lookahead, Window
from blocks.masks.random_mask import Random, drawn
from tests.blocks.build import Cache, plain

BATCH = 2
REAL = [[True] * 9, [False, True, True, False, True, True, True, True, False]]
IDS = [[4, 4, 4, 1, 1, 1, 1, 1, 1], [3, 3, 7, 7, 7, 7, 7, 3, 3]]  # in the second row document 3 comes back
LENGTHS = [2, 0]
IMPORTANT = [[False] * 8 + [True], [False, True, False, False, True, False, False, False, False]]
PAIRS = [[[(q * k + b) % 3 != 1 for k in range(9)] for q in range(13)] for b in range(BATCH)]
EDGES = {
    "real": torch.tensor(REAL),
    "doc": torch.tensor(IDS),
    "n": torch.tensor(LENGTHS),
    "important": torch.tensor(IMPORTANT),
    "pairs": torch.tensor(PAIRS)[:, :9],
}


@cache
def by_the_book(count: int, b: int, seed: int) -> set[int]:
    """Sample by Floyd's algorithm as in Bentley 1987, on a hash in unsigned 32-bit arithmetic."""
    if b + 1 <= count:
        return set(range(b + 1))

    def mixed(number: int) -> int:
        value = np.array([number % 2**32], np.uint32)  # an array wraps around without a warning
        for _ in range(2):
            value = (value ^ (value >> 16)) * np.uint32(0x45D9F3B)
        return int((value ^ (value >> 16))[0])

    chosen: set[int] = set()
    for number, last in enumerate(range(b + 1 - count, b + 1)):
        block = mixed(mixed(seed + number * 0x9E3779B9) + b) % (last + 1)
        chosen.add(last if block in chosen else block)
    return chosen


# Each mask beside what its definition says of row b, query q and key k.
PREDICATES: dict[str, tuple[Mask, Callable[[int, int, int], bool]]] = {
    "full": (Full(), lambda b, q, k: True),
    "causal": (Causal(), lambda b, q, k: k <= q),
    "window(3)": (Window(width=3), lambda b, q, k: k in (q - 2, q - 1, q, q + 1, q + 2)),
    "local(1)": (Local(radius=1), lambda b, q, k: k in (q - 1, q, q + 1)),
    "global_first(2)": (GlobalFirst(count=2), lambda b, q, k: q in (0, 1) or k in (0, 1)),
    "prefix(4)": (Prefix(length=4), lambda b, q, k: k in range(4)),
    "prefix(n)": (Prefix(length=NodeRef("n")), lambda b, q, k: k in range(LENGTHS[b])),
    "valid(real)": (Valid(flags=NodeRef("real")), lambda b, q, k: REAL[b][k]),
    "documents(doc)": (Documents(ids=NodeRef("doc")), lambda b, q, k: IDS[b][q] == IDS[b][k]),
    "lookahead(2)": (Lookahead(count=2), lambda b, q, k: k in range(q + 3)),
    "chunk(3)": (Chunk(length=3), lambda b, q, k: any({q, k} <= {c, c + 1, c + 2} for c in (0, 3, 6, 9, 12))),
    "block_window(2, 1)": (BlockWindow(block=2, radius=1), lambda b, q, k: k in range(q - q % 2 - 2, q - q % 2 + 4)),
    "strided(3)": (Strided(step=3), lambda b, q, k: k in range(q % 3, 99, 3)),
    "dilated(2, 3)": (Dilated(width=2, step=3), lambda b, q, k: k in (q - 3, q, q + 3)),
    "random(2, 3, 7)": (Random(count=2, block=3, seed=7), lambda b, q, k: k // 3 in by_the_book(2, q // 3, 7)),
    "global_last(2)": (GlobalLast(count=2), lambda b, q, k: q in (7, 8) or k in (7, 8)),
    "global_tokens(important)": (GlobalTokens(flags=NodeRef("important")), lambda b, q, k: IMPORTANT[b][q] or IMPORTANT[b][k]),
    "pairs(pairs)": (Pairs(pairs=NodeRef("pairs")), lambda b, q, k: PAIRS[b][q][k]),
}
ONE_LENGTH = ("documents(doc)", "global_tokens(important)", "global_last(2)")
"""Of one sequence, or told for nine positions."""


@pytest.mark.parametrize(
    ("mask", "flags", "name"),
    [
        (And(left=Causal(), right=Valid(flags=NodeRef("real"))), torch.ones(2, 9).bool(), "CausalView"),
        (Valid(flags=NodeRef("real")), torch.ones(2, 9).bool(), "FullView"),
        (And(left=Causal(), right=Valid(flags=NodeRef("real"))), torch.tensor(REAL), "DenseView"),
        (Not(mask=Valid(flags=NodeRef("real"))), torch.ones(2, 9).bool(), "DenseView"),  # and hides everything
        (Or(left=Causal(), right=GlobalTokens(flags=NodeRef("real"))), torch.ones(2, 9).bool(), "DenseView"),
    ],
)
def test_flags_that_are_all_true_cost_what_absent_ones_cost(mask: Mask, flags: torch.Tensor, name: str) -> None:
    """A batch without padding that brings flags of padding all the same."""
    run = plain(plan(mask, frozenset({"real"})))
    for inner in (run.given, run.absent):
        inner.grows = True
    found = run.prepare(torch.arange(9), torch.arange(9), real=flags)
    shown = found.view if type(found).__name__ == "RowsView" else found
    assert type(shown).__name__ == name
    plainly = dense(mask, 9, 9, real=flags)
    allowed = torch.ones(1, dtype=torch.bool) if found.dense() is None else found.dense()
    assert allowed.expand(2, 1, 9, 9)[:, 0].equal(plainly)


def test_flags_that_are_all_true_must_fit() -> None:
    """Flags of too few keys, or of other rows than the queries, are mistakes all the same; one row stands for all."""
    run = plain(plan(And(left=Causal(), right=Valid(flags=NodeRef("real"))), frozenset({"real"})))
    run.given.grows = run.absent.grows = True
    at, qkv = torch.arange(9), [torch.randn(3, 2, 9, 4) for _ in range(3)]
    run.prepare(at, at, real=torch.ones(1, 9).bool()).attend(*qkv, 1.0, 0.0)
    for wrong in (torch.ones(3, 8).bool(), torch.ones(3, 9, 1).bool(), torch.ones(2, 9).bool()):
        with pytest.raises((RuntimeError, IndexError)):
            run.prepare(at, at, real=wrong).attend(*qkv, 1.0, 0.0)


def test_flags_are_not_asked_where_others_may_follow() -> None:
    """In a session, and over rows that `vmap` takes one by one."""
    run = plain(plan(And(left=Causal(), right=Valid(flags=NodeRef("real"))), frozenset({"real"})))
    run.given.grows = run.absent.grows = True
    matrices = torch.vmap(lambda flags: run.prepare(torch.arange(9), torch.arange(9), real=flags[None]).dense())(
        torch.tensor(REAL)
    )
    assert matrices.shape == (2, 1, 1, 9, 9)
    run.given.cache = Cache({})
    assert type(run.prepare(torch.arange(9), torch.arange(9), real=torch.ones(2, 9).bool())).__name__ == "DenseView"


BY_POSITION = (
    *("causal", "window(3)", "local(1)", "global_first(2)", "prefix(4)", "lookahead(2)", "chunk(3)"),
    *("block_window(2, 1)", "strided(3)", "dilated(2, 3)", "random(2, 3, 7)"),
)
STATIC = ("full", *BY_POSITION)


def view(mask: Mask, queries: int, keys: int, **edges: Any) -> Any:
    """Return what attention over two sequences, or over one where they are equally long, would be given."""
    run = plain(plan(mask), grows=queries == keys)
    return run.prepare(torch.arange(queries), torch.arange(keys), **edges)


def dense(mask: Mask, queries: int, keys: int, **edges: Any) -> torch.Tensor:
    allowed = view(mask, queries, keys, **edges).dense()
    allowed = torch.ones(1, dtype=torch.bool) if allowed is None else allowed
    return allowed.expand(BATCH, 1, queries, keys)[:, 0]


def used(mask: Mask) -> dict[str, torch.Tensor]:
    return {name: value for name, value in EDGES.items() if name in mask.expression()}


@pytest.mark.parametrize("name", PREDICATES)
def test_the_matrix_is_what_the_definition_says_pair_by_pair(name: str) -> None:
    """Every kind, over one sequence and over queries that outnumber the keys."""
    mask, says = PREDICATES[name]
    for queries, keys in ((9, 9),) if name in ONE_LENGTH else ((8, 8), (13, 9)):
        edges = {**EDGES, "real": EDGES["real"][:, :keys], "pairs": torch.tensor(PAIRS)[:, :queries, :keys]}
        found = dense(mask, queries, keys, **{edge: edges[edge] for edge in used(mask)})
        for b, q, k in product(range(BATCH), range(queries), range(keys)):
            assert found[b, q, k] == says(b, q, k), (b, q, k)


def test_the_last_positions_are_those_of_queries_and_of_keys() -> None:
    """Each of its own sequence."""
    found = dense(GlobalLast(count=2), 13, 9)
    assert all(found[0, q, k] == (q in (11, 12) or k in (7, 8)) for q in range(13) for k in range(9))


def test_random_blocks_are_drawn_as_they_are_said_to_be() -> None:
    """One by one for ints; for tensors, positions in 32 bits too."""
    for count, seed, b in product((1, 3, 32), (0, 7, 10**30), (0, 1, 2, 31, 40, 10**6)):
        assert {block for block in drawn(count, b, seed) if block >= 0} == by_the_book(count, b, seed)
    mask = Random(count=3, block=2, seed=2**40)
    q, k = torch.arange(60, dtype=torch.int32)[:, None], torch.arange(50, dtype=torch.int32)
    assert mask.allows(q, k).tolist() == [[mask.allows(q, k) for k in range(50)] for q in range(60)]


def test_random_blocks_are_drawn_evenly() -> None:
    """Each of the ten pairs of five blocks about as often as any other, whatever the seed; four standard deviations."""
    found = Counter(frozenset(drawn(2, 4, seed)) for seed in range(20_000))
    assert len(found) == 10 and all(abs(times - 2000) < 4 * (20_000 * 0.1 * 0.9) ** 0.5 for times in found.values())


def test_a_longer_text_changes_no_draw() -> None:
    """What was drawn for a block stays."""
    mask = Random(count=2, block=4, seed=1)
    assert (dense(mask, 64, 64)[:, :24, :24] == dense(mask, 24, 24)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), list(product(PREDICATES, repeat=2)))
def test_any_two_masks_combine(first: str, second: str) -> None:
    """`and`, `or` and `not` are those of the definitions."""
    (a, says_a), (b, says_b) = PREDICATES[first], PREDICATES[second]
    combined = {
        And(left=a, right=b): lambda *at: says_a(*at) and says_b(*at),
        Or(left=a, right=Not(mask=b)): lambda *at: says_a(*at) or not says_b(*at),
    }
    for mask, says in combined.items():
        found = dense(mask, 9, 9, **used(mask))
        for at in product(range(BATCH), range(9), range(9)):
            assert found[at] == says(*at), at


def test_predicates_answer_for_plain_numbers() -> None:
    """The icons and the count ask with ints; edges then carry ints as well."""
    assert And(left=Causal(), right=Not(mask=Window(width=2))).allows(5, 3) is True
    assert Documents(ids=NodeRef("doc")).allows(5, 3, doc=Pair(query=1, key=2)) is False


def test_an_absent_input_hides_nothing() -> None:
    """Optional padding and optional documents, not given."""
    mask = And(left=Valid(flags=NodeRef("real")), right=Documents(ids=NodeRef("doc")))
    assert dense(mask, 9, 9, real=None, doc=None).all()
    assert dense(And(left=Causal(), right=mask), 9, 9, real=None, doc=None).sum() == BATCH * 45
    assert dense(And(left=Causal(), right=Documents(ids=NodeRef("doc"))), 9, 9, doc=None).sum() == BATCH * 45
    for other in (GlobalTokens(flags=NodeRef("important")), Pairs(pairs=NodeRef("pairs"))):
        assert dense(And(left=other, right=Chunk(length=3)), 9, 9, **dict.fromkeys(used(other))).sum() == BATCH * 27


def random_mask(rng: random.Random, depth: int) -> tuple[Mask, Callable[[int, int, int], bool]]:
    if depth == 0:
        return PREDICATES[rng.choice(STATIC)]
    (a, says_a), (b, says_b) = random_mask(rng, depth - 1), random_mask(rng, rng.randrange(depth))
    match rng.randrange(3):
        case 0:
            return And(left=a, right=b), lambda *at: says_a(*at) and says_b(*at)
        case 1:
            return Or(left=a, right=b), lambda *at: says_a(*at) or says_b(*at)
    return Not(mask=a), lambda *at: not says_a(*at)


@pytest.mark.parametrize("seed", range(60))
def test_the_count_of_visible_pairs_is_exact(seed: int) -> None:
    """Any expression, counted pair by pair."""
    rng = random.Random(seed)
    mask, says = random_mask(rng, rng.randrange(4))
    for queries, keys in ((1, 1), (8, 8), (13, 9), (5, 17), (2, 40)):
        assert visible(mask, queries, keys) == sum(says(0, q, k) for q in range(queries) for k in range(keys))


def test_the_last_positions_are_counted() -> None:
    """Those of queries and those of keys."""
    assert visible(GlobalLast(count=2), 13, 9) == 2 * 9 + 11 * 2
    assert visible(And(left=Causal(), right=GlobalLast(count=20)), 13, 9) == sum(min(q + 1, 9) for q in range(13))


def test_a_count_of_too_many_kinds_is_an_estimate() -> None:
    """Close to what it is: blocks of 16 that each see three, and of the first ones as many as there are."""
    exact = {time: 256 * (3 * time // 16 - 3) for time in (16_384, 2**20)}
    assert visible(Random(count=3, block=16, seed=0), 16_384, 16_384) == exact[16_384]
    assert visible(Random(count=3, block=16, seed=0), 2**20, 2**20) == pytest.approx(exact[2**20], rel=0.01)
    assert visible(Or(left=Chunk(length=359), right=Chunk(length=1)), 10**9, 10**9) == pytest.approx(359 * 10**9, rel=0.01)


def test_the_count_holds_for_long_sequences() -> None:
    """Sums that are known in closed form."""
    time, width = 131072, 4096
    assert visible(Causal(), time, time) == time * (time + 1) // 2
    assert visible(And(left=Causal(), right=Window(width=width)), time, time) == width * time - width * (width - 1) // 2
    assert visible(Local(radius=256), time, time) == 513 * time - 256 * 257
    assert visible(Chunk(length=100), time, time) == 1310 * 100**2 + 72**2
    assert visible(Strided(step=128), time, time) == time * time // 128
    assert visible(And(left=Causal(), right=Dilated(width=4, step=8)), time, time) == 4 * time - 8 - 16 - 24
    assert visible(BlockWindow(block=64, radius=1), time, time) == (3 * 2048 - 2) * 64**2


def test_what_only_data_decides_counts_as_seen() -> None:
    """Also where it is negated."""
    documents = Documents(ids=NodeRef("doc"))
    assert visible(And(left=Causal(), right=documents), 8, 8) == 36
    assert visible(And(left=Causal(), right=Not(mask=documents)), 8, 8) == 36
    assert visible(Prefix(length=NodeRef("n")), 8, 8) == 64


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (PREDICATES["prefix(n)"][0], "prefix(n)"),
        (
            And(left=And(left=Causal(), right=Local(radius=4)), right=Valid(flags=NodeRef("m"))),
            "causal and local(4) and valid(m)",
        ),
        (
            And(left=Causal(), right=Or(left=Local(radius=2), right=GlobalFirst(count=1))),
            "causal and (local(2) or global_first(1))",
        ),
        (Or(left=And(left=Causal(), right=Local(radius=2)), right=Full()), "causal and local(2) or full"),
        (Not(mask=And(left=Causal(), right=Not(mask=Full()))), "not (causal and not full)"),
        (Not(mask=Random(count=2, block=3, seed=7)), "not random(2, 3, 7)"),
    ],
)
def test_a_mask_reads_as_it_was_written(mask: Mask, text: str) -> None:
    """`not` binds tighter than `and`, `and` tighter than `or`."""
    assert mask.expression() == text


@pytest.mark.parametrize(
    ("mask", "name"),
    [
        (Full(), "FullPlan"),
        (And(left=Full(), right=Causal()), "CausalPlan"),
        (And(left=Window(width=4), right=Causal()), "WindowPlan"),
        (Chunk(length=4), "ChunkPlan"),
        (And(left=Chunk(length=4), right=Causal()), "ChunkPlan"),
        (And(left=Chunk(length=4), right=Window(width=4)), "BlockSparsePlan"),
        (And(left=Chunk(length=4), right=Documents(ids=NodeRef("doc"))), "BlockSparsePlan"),
        (And(left=Chunk(length=4), right=Chunk(length=6)), "BlockSparsePlan"),
        (Or(left=Chunk(length=4), right=Causal()), "BlockSparsePlan"),
        (Not(mask=Chunk(length=4)), "BlockSparsePlan"),
        (Local(radius=4), "WindowPlan"),
        (Documents(ids=NodeRef("doc")), "DocumentsPlan"),
        (And(left=Documents(ids=NodeRef("doc")), right=Causal()), "DocumentsPlan"),
        (
            And(left=And(left=Documents(ids=NodeRef("doc")), right=Causal()), right=Valid(flags=NodeRef("real"))),
            "DensePlan",
        ),
        (And(left=Causal(), right=Valid(flags=NodeRef("real"))), "PaddingPlan"),
        (Or(left=Causal(), right=Prefix(length=3)), "BlockSparsePlan"),
        (Not(mask=Causal()), "BlockSparsePlan"),
        (Valid(flags=NodeRef("real")), "PaddingPlan"),
        (Or(left=Causal(), right=Valid(flags=NodeRef("real"))), "DensePlan"),
    ],
)
def test_the_structure_of_a_mask_decides_how_it_is_executed(mask: Mask, name: str) -> None:
    """Only what a fast path says in full may take it."""
    assert type(plan(mask)).__name__ == name


def by_formula(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, allowed: torch.Tensor | None, scale: float) -> torch.Tensor:
    """Compute attention by its formula; [B, H, T, D] and [B, K, S, D]; zeros where a query sees nothing."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    weights = (q @ k.mT * scale).exp()
    weights = weights if allowed is None else weights * allowed
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-30) @ v


def matches_formula(found: Any, allowed: torch.Tensor | None, queries: int, keys: int, batch: int = BATCH) -> None:
    """Assert that the outputs and gradients of a view are those of the formula, with 4 query heads on 2 key heads, in float64."""
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(batch, heads, length, width, dtype=torch.float64, requires_grad=True)
        for heads, length, width in ((4, queries, 6), (2, keys, 6), (2, keys, 5))
    )
    y, expected = found.attend(q, k, v, 0.4, 0.0), by_formula(q, k, v, allowed, 0.4)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    direction = torch.randn_like(expected)
    gradients = (torch.autograd.grad(out, (q, k, v), direction) for out in (y, expected))
    for mine, right in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("time", [1, 2, 3, 6, 7, 8, 9, 11, 12, 13, 30])
def test_a_window_in_chunks_equals_its_matrix(time: int, causal: bool) -> None:
    """Shorter than the window, a few chunks, and lengths that are no multiple of it."""
    mask = And(left=Causal(), right=Window(width=3)) if causal else Window(width=3)
    found = view(mask, time, time)
    allowed = torch.tensor([[abs(q - k) < 3 and (k <= q or not causal) for k in range(time)] for q in range(time)])
    assert (type(found).__name__ == "WindowView") == (time > 6)
    matches_formula(found, allowed, time, time)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("time", [1, 2, 3, 4, 6, 7, 8, 30, 31])
def test_chunk_by_chunk_equals_its_matrix(time: int, causal: bool) -> None:
    """One chunk or less, several, and a last one that is shorter."""
    mask = And(left=Causal(), right=Chunk(length=3)) if causal else Chunk(length=3)
    found = view(mask, time, time)
    allowed = torch.tensor([[q // 3 == k // 3 and (k <= q or not causal) for k in range(time)] for q in range(time)])
    assert (type(found).__name__ == "ChunkView") == (time > 3)
    assert found.dense() is None or found.dense().equal(allowed)
    matches_formula(found, allowed, time, time)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("ids", "split"),
    [
        ([[5] * 20 + [2] * 30 + [9] * 14, [2] * 64], True),  # the same number in two rows is not the same document
        ([[5] * 1 + [7] * 62 + [5] * 1, [1] * 64], False),  # document 5 comes back
        ([[*range(60), 60, 60, 60, 60], [0] * 64], False),  # too many to be worth a call each
        ([[8] * 1 + [7] * 62 + [6] * 1, [1] * 63 + [0]], True),  # documents of one token
    ],
)
def test_documents_one_by_one_equal_their_matrix(ids: list[list[int]], split: bool, causal: bool) -> None:
    """Packed rows, in outputs and gradients."""
    documents = Documents(ids=NodeRef("doc"))
    mask = And(left=Causal(), right=documents) if causal else documents
    found = view(mask, 64, 64, doc=torch.tensor(ids))
    allowed = torch.tensor([[[r[q] == r[k] and (k <= q or not causal) for k in range(64)] for q in range(64)] for r in ids])
    assert (type(found).__name__ == "DocumentsView") == split
    matches_formula(found, allowed[:, None], 64, 64)


def test_a_causal_mask_over_a_memory_compares_positions() -> None:
    """Queries 4 … 6 of a session see keys up to their own number, although the kernel's mask would start at the first."""
    run = plain(plan(Causal()), grows=False)
    allowed = torch.tensor([[k <= q for k in range(9)] for q in (4, 5, 6)])
    matches_formula(run.prepare(torch.tensor([4, 5, 6]), torch.arange(9)), allowed, 3, 9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_query_that_sees_no_key_gives_zeros(dtype: torch.dtype) -> None:
    """And no NaN reaches any gradient, whether the keys are hidden one by one, all for a row, or for all queries."""
    hidden = Valid(flags=NodeRef("real"))
    flags = torch.tensor([[True, True, False], [False, False, False]])
    for mask in (hidden, And(left=Causal(), right=hidden), Not(mask=Full())):
        q, k, v = (torch.randn(2, 4, 3, 8, dtype=dtype, requires_grad=True) for _ in range(3))
        y = view(mask, 3, 3, **dict.fromkeys(used(mask), flags)).attend(q, k, v, 0.3, 0.0)
        assert (y[1] == 0).all()
        y.float().square().sum().backward()
        assert all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("full", "causal", "causal and window(3)", "causal and documents(doc)", "causal and valid(real)", "causal or prefix(n)"),
        *(
            "causal and chunk(3)",
            "chunk(3)",
            "causal and strided(3)",
            "causal and dilated(2, 3)",
            "causal and block_window(2, 1)",
        ),
        *(
            "causal and lookahead(2)",
            "causal and random(2, 3, 7)",
            "causal and global_tokens(important)",
            "causal and pairs(pairs)",
        ),
    ],
)
@pytest.mark.parametrize("cuts", [[4], [1, 2, 3, 4, 5, 6, 7, 8], [7, 8], [2, 5]])
def test_a_session_sees_what_one_call_sees(name: str, cuts: list[int]) -> None:
    """At every split, with what the edges carried at earlier keys."""
    parts = [PREDICATES[part.strip()][0] for part in name.replace(" or ", " and ").split(" and ")]
    mask = parts[0] if len(parts) == 1 else (Or if " or " in name else And)(left=parts[0], right=parts[1])
    whole = dense(mask, 9, 9, **used(mask))
    run = plain(plan(mask), grows=True)
    run.cache = Cache(dict.fromkeys(kept(plan(mask)), -1))
    for start, stop in zip([0, *cuts], [*cuts, 9], strict=True):
        edges = {edge: value if edge == "n" else value[:, start:stop] for edge, value in used(mask).items()}
        found = run.prepare(torch.arange(start, stop), torch.arange(start, stop), **edges)
        expected = whole[:, None, start:stop, :stop] if name != "full" else None
        matches_formula(found, expected, stop - start, stop)


def test_rows_of_pairs_that_lack_keys_are_refused() -> None:
    """Rather than spread over all keys: a later call that gives the pairs of its own tokens alone."""
    chosen = plan(Pairs(pairs=NodeRef("pairs")))
    run = plain(chosen, grows=True)
    run.cache = Cache(dict.fromkeys(kept(chosen), -1))
    run.prepare(torch.arange(3), torch.arange(3), pairs=EDGES["pairs"][:, :3, :3])
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        run.prepare(torch.arange(3, 4), torch.arange(3, 4), pairs=EDGES["pairs"][:, 3:4, :1])


def test_only_the_key_side_of_what_grows_is_kept() -> None:
    """One number per row arrives anew with every call, and so do whole rows of pairs."""
    assert kept(plan(Pairs(pairs=NodeRef("pairs")))) == {"position_ids": "int[..., key]"}
    assert kept(plan(Full())) == {}
    mask = And(left=Or(left=Causal(), right=Prefix(length=NodeRef("n"))), right=Valid(flags=NodeRef("real")))
    assert kept(plan(mask)) == {"position_ids": "int[..., key]", "real": "bool[batch, key]"}


@pytest.mark.slow
@pytest.mark.parametrize("eager", [True, False])
def test_eight_layers_with_two_masks_compile_to_two_graphs(eager: bool) -> None:
    """Views are arguments of the compiled layer, prepared outside of it; or the whole is one graph without a break."""
    local = plain(plan(And(left=Causal(), right=Window(width=3))), grows=True)
    packed = plain(plan(And(left=Causal(), right=Documents(ids=NodeRef("doc")))), grows=True)
    layers = torch.nn.ModuleList(torch.nn.Linear(8, 8, bias=False) for _ in range(8)).double()
    ids, at = torch.tensor([[1] * 20 + [2] * 30]), torch.arange(50)

    def layer(own: torch.nn.Linear, x: torch.Tensor, mask: Any) -> torch.Tensor:
        return x + mask.attend(own(x), x, x, 0.5, 0.0)

    def model(x: torch.Tensor, layer: Callable[..., torch.Tensor]) -> torch.Tensor:
        near, far = local.prepare(at, at), packed.prepare(at, at, doc=ids)
        for index, own in enumerate(layers):
            x = layer(own, x, far if index % 4 == 3 else near)
        return x

    torch._dynamo.reset()
    counter = CompileCounter()
    x = torch.randn(1, 2, 50, 8, dtype=torch.float64, requires_grad=True)  # as all that layers get in training
    if eager:
        y = model(x, torch.compile(layer, backend=counter, fullgraph=True))
    else:
        y = torch.compile(lambda x: model(x, layer), backend=counter, fullgraph=True)(x)
    torch.testing.assert_close(y, model(x, layer), rtol=1e-12, atol=1e-10)
    assert counter.frame_count == (2 if eager else 1)


def test_a_caption_has_room_for_the_first_of_many_masks() -> None:
    """The picture beside it shows all."""
    three = Or(left=Or(left=Local(radius=2), right=GlobalFirst(count=1)), right=Causal())
    assert three.words() == "local 2 or global first 1 or causal"
    four = Or(left=three, right=Strided(step=4))
    assert four.words() == "local 2 or global first 1 or causal or strided 4"
    assert Or(left=four, right=GlobalLast(count=2)).words() == "local 2 or 4 others"
    inner = And(left=Causal(), right=Not(mask=Or(left=Dilated(width=16, step=2), right=Local(radius=2))))
    assert inner.words() == "causal and not (dilated 16 (step 2) or local 2)"
