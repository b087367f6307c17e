"""Masks: the predicate, its count, its text, and every way to execute it."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from blocks.core import Edge
from blocks.masks.by_data import Documents, Prefix, Valid
from blocks.masks.by_position import Causal, First, Full, Near, Window
from blocks.masks.count import visible
from blocks.masks.describe import describe
from blocks.masks.mask import Mask, Pair
from blocks.masks.operators import And, Not, Or
from blocks.masks.plans import kept, plan
from tests.blocks.build import Cache, plain

BATCH = 2
REAL = [[True] * 9, [False, True, True, False, True, True, True, True, False]]
IDS = [[4, 4, 4, 1, 1, 1, 1, 1, 1], [3, 3, 7, 7, 7, 7, 7, 3, 3]]  # in the second row document 3 comes back
LENGTHS = [2, 0]
EDGES = {"real": torch.tensor(REAL), "doc": torch.tensor(IDS), "n": torch.tensor(LENGTHS)}

# Each mask beside what its definition says of row b, query q and key k.
PREDICATES: dict[str, tuple[Mask, Callable[[int, int, int], bool]]] = {
    "full": (Full(), lambda b, q, k: True),
    "causal": (Causal(), lambda b, q, k: k <= q),
    "window(3)": (Window(width=3), lambda b, q, k: k in (q - 2, q - 1, q, q + 1, q + 2)),
    "near(1)": (Near(radius=1), lambda b, q, k: k in (q - 1, q, q + 1)),
    "first(2)": (First(count=2), lambda b, q, k: q in (0, 1) or k in (0, 1)),
    "prefix(4)": (Prefix(length=4), lambda b, q, k: k in range(4)),
    "prefix(n)": (Prefix(length=Edge("n")), lambda b, q, k: k in range(LENGTHS[b])),
    "valid(real)": (Valid(flags=Edge("real")), lambda b, q, k: REAL[b][k]),
    "documents(doc)": (Documents(ids=Edge("doc")), lambda b, q, k: IDS[b][q] == IDS[b][k]),
}
STATIC = ("full", "causal", "window(3)", "near(1)", "first(2)", "prefix(4)")


def view(mask: Mask, queries: int, keys: int, *, counted: bool = True, **edges: Any) -> Any:
    """What attention over two sequences, or over one where they are equally long, would be given."""
    run = plain(plan(mask), counted=counted, grows=queries == keys)
    return run.prepare(torch.arange(queries), torch.arange(keys), **edges)


def dense(mask: Mask, queries: int, keys: int, **edges: Any) -> torch.Tensor:
    allowed = view(mask, queries, keys, **edges).dense()
    allowed = torch.ones(1, dtype=torch.bool) if allowed is None else allowed
    return allowed.expand(BATCH, 1, queries, keys)[:, 0]


def used(mask: Mask) -> dict[str, torch.Tensor]:
    return {name: value for name, value in EDGES.items() if name in describe(mask)}


@pytest.mark.parametrize("name", PREDICATES)
def test_the_matrix_is_what_the_definition_says_pair_by_pair(name: str) -> None:
    """Every kind, over one sequence and over queries that outnumber the keys."""
    mask, says = PREDICATES[name]
    for queries, keys in ((9, 9),) if "doc" in name else ((8, 8), (13, 9)):
        edges = {"real": EDGES["real"][:, :keys], "doc": EDGES["doc"], "n": EDGES["n"]}
        found = dense(mask, queries, keys, **{edge: edges[edge] for edge in used(mask)})
        for b, q, k in product(range(BATCH), range(queries), range(keys)):
            assert found[b, q, k] == says(b, q, k), (b, q, k)


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
    assert Documents(ids=Edge("doc")).allows(5, 3, doc=Pair(query=1, key=2)) is False


def test_an_absent_input_hides_nothing() -> None:
    """Optional padding and optional documents, not given."""
    mask = And(left=Valid(flags=Edge("real")), right=Documents(ids=Edge("doc")))
    assert dense(mask, 9, 9, real=None, doc=None).all()
    assert dense(And(left=Causal(), right=mask), 9, 9, real=None, doc=None).sum() == BATCH * 45
    assert dense(And(left=Causal(), right=Documents(ids=Edge("doc"))), 9, 9, doc=None).sum() == BATCH * 45


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


def test_the_count_holds_for_long_sequences() -> None:
    """Sums that are known in closed form."""
    time, width = 131072, 4096
    assert visible(Causal(), time, time) == time * (time + 1) // 2
    assert visible(And(left=Causal(), right=Window(width=width)), time, time) == width * time - width * (width - 1) // 2
    assert visible(Near(radius=256), time, time) == 513 * time - 256 * 257


def test_what_only_data_decides_counts_as_seen() -> None:
    """Also where it is negated."""
    documents = Documents(ids=Edge("doc"))
    assert visible(And(left=Causal(), right=documents), 8, 8) == 36
    assert visible(And(left=Causal(), right=Not(mask=documents)), 8, 8) == 36
    assert visible(Prefix(length=Edge("n")), 8, 8) == 64


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (PREDICATES["prefix(n)"][0], "prefix(n)"),
        (And(left=And(left=Causal(), right=Near(radius=4)), right=Valid(flags=Edge("m"))), "causal and near(4) and valid(m)"),
        (And(left=Causal(), right=Or(left=Near(radius=2), right=First(count=1))), "causal and (near(2) or first(1))"),
        (Or(left=And(left=Causal(), right=Near(radius=2)), right=Full()), "causal and near(2) or full"),
        (Not(mask=And(left=Causal(), right=Not(mask=Full()))), "not (causal and not full)"),
    ],
)
def test_a_mask_reads_as_it_was_written(mask: Mask, text: str) -> None:
    """`not` binds tighter than `and`, `and` tighter than `or`."""
    assert describe(mask) == text


@pytest.mark.parametrize(
    ("mask", "name"),
    [
        (Full(), "FullPlan"),
        (And(left=Full(), right=Causal()), "CausalPlan"),
        (And(left=Window(width=4), right=Causal()), "WindowPlan"),
        (Near(radius=4), "WindowPlan"),
        (Documents(ids=Edge("doc")), "DocumentsPlan"),
        (And(left=Documents(ids=Edge("doc")), right=Causal()), "DocumentsPlan"),
        (And(left=And(left=Documents(ids=Edge("doc")), right=Causal()), right=Valid(flags=Edge("real"))), "DensePlan"),
        (Or(left=Causal(), right=Prefix(length=3)), "DensePlan"),
        (Not(mask=Causal()), "DensePlan"),
    ],
)
def test_the_structure_of_a_mask_decides_how_it_is_executed(mask: Mask, name: str) -> None:
    """Only what a fast path says in full may take it."""
    assert type(plan(mask)).__name__ == name


def by_formula(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, allowed: torch.Tensor | None, scale: float) -> torch.Tensor:
    """Attention by its formula; [B, H, T, D] and [B, K, S, D]; zeros where a query sees nothing."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    weights = (q @ k.mT * scale).exp()
    weights = weights if allowed is None else weights * allowed
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-30) @ v


def matches_formula(found: Any, allowed: torch.Tensor | None, queries: int, keys: int, batch: int = BATCH) -> None:
    """Outputs and gradients of a view are those of the formula, with 4 query heads on 2 key heads, in float64."""
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
    documents = Documents(ids=Edge("doc"))
    mask = And(left=Causal(), right=documents) if causal else documents
    found = view(mask, 64, 64, doc=torch.tensor(ids))
    allowed = torch.tensor([[[r[q] == r[k] and (k <= q or not causal) for k in range(64)] for q in range(64)] for r in ids])
    assert (type(found).__name__ == "DocumentsView") == split
    matches_formula(found, allowed[:, None], 64, 64)


def test_positions_that_start_anew_in_each_document_still_split() -> None:
    """As packed data has them; positions that fall within a document do not."""
    run = plain(plan(And(left=Causal(), right=Documents(ids=Edge("doc")))), counted=False, grows=True)
    ids = torch.tensor([[1] * 20 + [2] * 20])
    rising = torch.cat([torch.arange(20), torch.arange(20)])[None]
    found = run.prepare(rising, rising, doc=ids)
    assert type(found).__name__ == "DocumentsView"
    both = torch.block_diag(torch.ones(20, 20), torch.ones(20, 20)).tril().bool()
    matches_formula(found, both, 40, 40, batch=1)
    falling = rising.flip(1)
    found = run.prepare(falling, falling, doc=ids)
    matches_formula(found, torch.block_diag(torch.ones(20, 20), torch.ones(20, 20)).triu().bool(), 40, 40, batch=1)


@pytest.mark.parametrize("name", ["causal", "window(3)", "near(1)", "first(2)", "prefix(4)"])
def test_masks_judge_by_positions_not_by_places(name: str) -> None:
    """Left padding: the second row's positions start late."""
    mask, says = PREDICATES[name]
    at = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 1, 2, 3, 4]])
    found = plain(plan(mask), counted=False, grows=True).prepare(at, at)
    rows = [[[says(b, int(q), int(k)) for k in at[b]] for q in at[b]] for b in range(BATCH)]
    matches_formula(found, torch.tensor(rows)[:, None], 8, 8)


def test_a_causal_mask_over_a_memory_compares_positions() -> None:
    """Queries 4 … 6 of a session see keys up to their own number, although the kernel's mask would start at the first."""
    run = plain(plan(Causal()), counted=True, grows=False)
    allowed = torch.tensor([[k <= q for k in range(9)] for q in (4, 5, 6)])
    matches_formula(run.prepare(torch.tensor([4, 5, 6]), torch.arange(9)), allowed, 3, 9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_query_that_sees_no_key_gives_zeros(dtype: torch.dtype) -> None:
    """And no NaN reaches any gradient, whether the keys are hidden one by one, all for a row, or for all queries."""
    hidden = Valid(flags=Edge("real"))
    flags = torch.tensor([[True, True, False], [False, False, False]])
    for mask in (hidden, And(left=Causal(), right=hidden), Not(mask=Full())):
        q, k, v = (torch.randn(2, 4, 3, 8, dtype=dtype, requires_grad=True) for _ in range(3))
        y = view(mask, 3, 3, **dict.fromkeys(used(mask), flags)).attend(q, k, v, 0.3, 0.0)
        assert (y[1] == 0).all()
        y.float().square().sum().backward()
        assert all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.parametrize(
    "name",
    ["full", "causal", "causal and window(3)", "causal and documents(doc)", "causal and valid(real)", "causal or prefix(n)"],
)
@pytest.mark.parametrize("cuts", [[4], [1, 2, 3, 4, 5, 6, 7, 8], [7, 8], [2, 5]])
def test_a_session_sees_what_one_call_sees(name: str, cuts: list[int]) -> None:
    """At every split, with what the edges carried at earlier keys."""
    parts = [PREDICATES[part.strip()][0] for part in name.replace(" or ", " and ").split(" and ")]
    mask = parts[0] if len(parts) == 1 else (Or if " or " in name else And)(left=parts[0], right=parts[1])
    whole = dense(mask, 9, 9, **used(mask))
    run = plain(plan(mask), counted=True, grows=True)
    run.cache = Cache(dict.fromkeys(kept(plan(mask)), -1))
    for start, stop in zip([0, *cuts], [*cuts, 9], strict=True):
        edges = {edge: value if edge == "n" else value[:, start:stop] for edge, value in used(mask).items()}
        found = run.prepare(torch.arange(start, stop), torch.arange(start, stop), **edges)
        expected = whole[:, None, start:stop, :stop] if name != "full" else None
        matches_formula(found, expected, stop - start, stop)


def test_only_the_key_side_of_what_grows_is_kept() -> None:
    """One number per row arrives anew with every call."""
    assert kept(plan(Full())) == {}
    mask = And(left=Or(left=Causal(), right=Prefix(length=Edge("n"))), right=Valid(flags=Edge("real")))
    assert kept(plan(mask)) == {"at": "int[..., key]", "real": "bool[batch, key]"}


@pytest.mark.parametrize("eager", [True, False])
def test_eight_layers_with_two_masks_compile_to_two_graphs(eager: bool) -> None:
    """Views are arguments of the compiled layer, prepared outside of it; or the whole is one graph without a break."""
    local = plain(plan(And(left=Causal(), right=Window(width=3))), counted=True, grows=True)
    packed = plain(plan(And(left=Causal(), right=Documents(ids=Edge("doc")))), counted=True, grows=True)
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
