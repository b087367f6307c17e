"""The operator behind experts against a loop over rows: with every dtype, any counts, under `torch.func`, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import composer
from blocks.experts.grouped_kernels import each_forward, each_weight, has_product, maps_of_rows, rows_by_maps
from blocks.experts.grouped_linear import grouped_linear, register_grouped_linear
from blocks.experts.moe import by_position
from tests.blocks.test_moe import ROUTERS, mixture, positions

ALL_ROUTERS = {**ROUTERS, "hierarchical": "{type: hierarchical_router, groups: 2, top_groups: 1}"}
COUNTS = {
    "some": [2, 1, 3, 1],
    "zeros": [3, 0, 4, 0],
    "all to the first": [7, 0, 0, 0],
    "all to the last": [0, 0, 0, 7],
    "one row": [0, 1, 0, 0],
    "dropped": [2, 0, 5, 0, 3],
    "none dropped": [2, 1, 3, 1, 0],
    "all dropped": [0, 0, 0, 0, 4],
}
"""Rows of four experts, and of none where there is a fifth number."""
SAMPLES = [[2, 0, 5, 0, 2], [0, 0, 0, 9, 0], [4, 1, 1, 1, 2]]


@pytest.fixture(autouse=True)
def _registered() -> None:
    register_grouped_linear()


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def by_row(x: Tensor, weight: Tensor, bias: Tensor, counts: Tensor) -> Tensor:
    """Multiply row by row."""
    rows = []
    for expert, count in enumerate(counts.tolist()):
        for _ in range(count):
            row = x[len(rows)]
            y = weight[expert % 4] @ row + bias[expert % 4]
            rows.append(y if expert < 4 else 0 * y)
    return torch.stack(rows)


@pytest.mark.parametrize(("inputs", "outputs"), [(16, 24), (5, 3)])
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.01)]
)
def test_each_row_is_multiplied_by_the_map_of_its_expert(
    dtype: torch.dtype, tolerance: float, counts: list[int], inputs: int, outputs: int
) -> None:
    """By torch's product where it takes the widths and by the loop elsewhere, with all gradients, against rows in float64."""
    given = drawn(sum(counts), inputs, dtype=dtype), drawn(4, outputs, inputs, dtype=dtype), drawn(4, outputs, dtype=dtype)
    assert has_product(given[0], 4, outputs, inputs) == (dtype != torch.float64 and inputs == 16)
    results = []
    for run, values in ((grouped_linear, given), (by_row, [each.double() for each in given])):
        leaves = [each.clone().requires_grad_() for each in values]
        y = run(*leaves, torch.tensor(counts))
        results.append((y.detach().double(), *(each.double() for each in torch.autograd.grad(y.mul(y.detach()).sum(), leaves))))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * (1 + theirs.abs().max().item()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_was_in_memory_before_is_nowhere_in_a_result(dtype: torch.dtype) -> None:
    """Neither in rows of no expert nor in gradients of experts without rows."""
    counts = torch.tensor(COUNTS["dropped"])
    x, weight, grad = drawn(10, 16, dtype=dtype), drawn(4, 24, 16, dtype=dtype), drawn(10, 24, dtype=dtype)
    torch.use_deterministic_algorithms(True)  # new memory is NaN then
    try:
        assert torch.empty(1).isnan()
        y, maps = rows_by_maps(x, weight, counts), maps_of_rows(grad, x, counts[:4])
    finally:
        torch.use_deterministic_algorithms(False)
    assert not y[7:].any() and not maps[[1, 3]].any()
    torch.testing.assert_close(y, each_forward(x, weight, counts))
    torch.testing.assert_close(maps, each_weight(grad, x, counts[:4]))


def test_memory_may_be_laid_out_in_any_way() -> None:
    """Rows that repeat one, that start anywhere, a single one with the stride of another; maps that are parts or transposes."""
    counts, both = torch.tensor([2, 1, 3, 1]), drawn(4, 48, 16, dtype=torch.float32)
    x = drawn(7, 16, dtype=torch.float32)
    rows = [x, x[:1].expand(7, 16), x.T.contiguous().T, drawn(7 * 16 + 1, dtype=torch.float32)[1:].view(7, 16)]
    for given in rows:
        for weight in (both[:, ::2], both.chunk(2, 1)[1], both.mT.contiguous().mT, drawn(1, dtype=torch.float32).expand_as(both)):
            torch.testing.assert_close(rows_by_maps(given, weight, counts), each_forward(given, weight, counts))
    one = drawn(1, 32, dtype=torch.float32)[:, ::2].unsqueeze(0)[0].as_strided((1, 16), (3, 1))
    alone = torch.tensor([0, 1, 0, 0])
    torch.testing.assert_close(rows_by_maps(one, both, alone), each_forward(one, both, alone))
    assert rows_by_maps(x[:0], both, alone * 0).shape == (0, 48)
    assert not maps_of_rows(x[:0], x[:0], alone * 0).any()


@pytest.mark.parametrize("counts", [COUNTS["zeros"], COUNTS["dropped"]], ids=["zeros", "dropped"])
def test_gradients_have_gradients(counts: list[int]) -> None:
    """Of the operator and of the one that computes the gradient of its maps."""
    x, weight = drawn(sum(counts), 3).requires_grad_(), drawn(4, 2, 3).requires_grad_()
    given = torch.tensor(counts)
    assert torch.autograd.gradcheck(lambda x, weight: torch.ops.composer.grouped_linear(x, weight, given), (x, weight))
    assert torch.autograd.gradgradcheck(lambda x, weight: torch.ops.composer.grouped_linear(x, weight, given), (x, weight))


@pytest.mark.parametrize("drops", [True, False])
@pytest.mark.parametrize("dims", [(0, None, 0), (0, 0, 0), (None, 0, None), (0, None, None), (None, None, 0), (1, 2, 1)])
def test_samples_are_computed_as_one_by_one(dims: tuple[int | None, ...], drops: bool) -> None:
    """With maps of their own and shared ones, the samples along any axis; in one product, whatever their number."""
    counts = torch.tensor(SAMPLES if drops else [[*row[:3], row[3] + row[4]] for row in SAMPLES])
    all_of = (drawn(3, 9, 8), drawn(3, 4, 12, 8, seed=1), counts)
    given = [each[0] if dim is None else each.movedim(0, dim) for each, dim in zip(all_of, dims, strict=True)]
    each_given = [[each[0 if dim is None else sample] for each, dim in zip(all_of, dims, strict=True)] for sample in range(3)]
    with Recorded() as record:
        y = torch.vmap(torch.ops.composer.grouped_linear, dims)(*given)
    assert record.names.count("composer::grouped_linear") == 1
    expected = torch.stack([torch.ops.composer.grouped_linear(*one) for one in each_given])
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:torch.searchsorted")  # `vmap` over the rows of a bias
@pytest.mark.parametrize("expert", ["gated_ffn", "biased"])
@pytest.mark.parametrize("router", ALL_ROUTERS)
def test_gradients_of_samples_are_those_of_a_loop(router: str, expert: str) -> None:
    """By `torch.func`: `vmap` of `grad` of a functional call, of the output and the loss that balances the router."""
    model = mixture(router, expert, routers=ALL_ROUTERS).eval()
    parameters = {name: each.detach() for name, each in model.named_parameters()}
    x = positions(5)

    def loss(parameters: dict[str, Tensor], row: Tensor) -> Tensor:
        result: Any = torch.func.functional_call(model, parameters, (row[None],))
        total: Tensor = result.y.sin().sum() + result.load_balancing
        return total

    found = torch.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    for sample, row in enumerate(x):
        leaves = {name: each.clone().requires_grad_() for name, each in parameters.items()}
        grads = torch.autograd.grad(loss(leaves, row), list(leaves.values()), allow_unused=True, materialize_grads=True)
        for (name, ours), theirs in zip(found.items(), grads, strict=True):
            torch.testing.assert_close(ours[sample], theirs, rtol=0, atol=1e-12, msg=name)


class Recorded(TorchDispatchMode):
    """Notes the names of all operators that torch is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        if func.name().startswith(("aten::index.", "aten::index_put", "aten::_index_put")):  # flags are counted first
            assert not any(each is not None and each.dtype == torch.bool for each in args[1])
        return func(*args, **(kwargs or {}))


WAITING = (
    "_local_scalar_dense",
    "item",
    "is_nonzero",
    "nonzero",
    "bincount",
    "masked_select",
    "unique",
    "equal",
    "repeat_interleave.",
)
"""Operators of torch for which the host waits until a GPU has computed a value."""


@pytest.mark.parametrize("expert", ["gated_ffn", "biased"])
@pytest.mark.parametrize("router", ALL_ROUTERS)
def test_no_value_is_waited_for(router: str, expert: str) -> None:
    """In training, forward and backward, with every output: on a GPU the next layers are queued meanwhile."""
    model, x = mixture(router, expert, routers=ALL_ROUTERS).train(), positions().requires_grad_()
    with Recorded() as record:
        result = model(x)
        (result.y.sum() + result.load_balancing + result.router_z + result.load.sum()).backward()
    assert {"composer::grouped_linear", "composer::grouped_linear_weight"} <= {*record.names}
    assert not [name for name in record.names if name.removeprefix("aten::").startswith(WAITING)]


@pytest.mark.parametrize("router", [name for name in ALL_ROUTERS if name not in ("noisy", "hierarchical")])
def test_torch_counts_the_flops_that_the_cost_model_states(router: str) -> None:
    """Each row by one matrix, forward; twice that backward."""
    model = mixture(router, routers=ALL_ROUTERS)
    stated = model.recipe.summary({"batch": 3, "time": 7}).costs.flops.dense
    x = positions(3).requires_grad_()
    with FlopCounterMode(display=False) as forward:
        y = model(x).y
    with FlopCounterMode(display=False) as backward:
        y.backward(y.detach())
    assert forward.get_total_flops() == stated
    assert backward.get_total_flops() == 2 * stated


@pytest.mark.parametrize("router", ["mixtral", "switch", "experts"])
def test_widths_that_torch_multiplies_are_computed_as_in_float64(router: str) -> None:
    """A whole mixture with its gradients in float32; under autocast most rows, since rounding chooses other experts for some."""
    moe = f"{{type: moe, experts: 4, router: {ROUTERS[router]}, expert: {{type: gated_ffn, hidden: 24, bias: true}}}}"
    recipe = composer.load(f"recipe: one\ninputs: {{x: 'float[batch, time, 16]'}}\ngraph: {{moe: {moe}}}\n")
    x = drawn(3, 64, 16, dtype=torch.float32)
    results = []
    for dtype in (torch.float32, torch.float64):
        model = recipe.compile(seed=0).to(dtype)
        y = model(x.to(dtype)).moe
        y.sin().sum().backward()
        results.append((y.detach().double(), [each.grad.double() for each in model.parameters()]))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = recipe.compile(seed=0)(x).moe
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    exact = results[1][0]
    far = (y - exact).norm(dim=-1) > 0.03 * exact.norm(dim=-1)
    assert far.double().mean() < 0.1


def test_visits_may_be_summed_by_position_as_on_a_gpu() -> None:
    """As by additions to the rows of a result, with the same gradients; in bfloat16 rounded once."""
    chosen = torch.randint(4, (21 * 3,), generator=torch.Generator().manual_seed(0))
    order = chosen.argsort(stable=True)
    results = []
    for run in (
        lambda given: by_position(given, order, 3),
        lambda given: torch.zeros(21, 8).double().index_add(0, order // 3, given),
    ):
        given = drawn(63, 8).requires_grad_()
        y = run(given)
        results.append((y, *torch.autograd.grad(y.sin().sum(), given)))
    torch.testing.assert_close(*results, rtol=0, atol=1e-12)
    given = drawn(63, 8, dtype=torch.bfloat16)
    exact = by_position(given.float(), order, 3)
    assert torch.equal(by_position(given, order, 3), exact.bfloat16())
