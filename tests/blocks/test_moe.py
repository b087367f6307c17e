"""Mixtures of experts against a plain loop over positions, against transformers, and in what no position may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers import GptOssConfig, MixtralConfig
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock, load_balancing_loss_func

import composer
from composer.decode import session

B, T, D, H, E = 3, 7, 6, 5, 4
ROUTERS = {
    "mixtral": "{type: top_k_router, top_k: 2}",
    "plain": "{type: top_k_router, top_k: 3, normalize: false}",
    "sigmoid": "{type: top_k_router, top_k: 2, scoring: sigmoid, scaling: 2.5}",
    "eps": "{type: top_k_router, top_k: 2, scoring: sigmoid, eps: 0.125}",
    "one": "{type: top_k_router, top_k: 1, normalize: false}",
    "groups": "{type: top_k_router, top_k: 2, normalize: false, groups: 2}",
    "single": "{type: top_k_router, top_k: 3, scoring: sigmoid, groups: 4, top_groups: 3}",
    "top two": "{type: top_k_router, top_k: 1, normalize: false, scoring: sigmoid, groups: 2, group_score: top_two}",
    "noisy": "{type: noisy_top_k_router, top_k: 2}",
    "switch": "{type: switch_router, capacity: 2}",
    "experts": "{type: expert_choice_router, capacity_factor: 2}",
}
BIASED = {name: text.replace("}", ", bias: true}") for name, text in ROUTERS.items()}
EXPERTS = {
    "gated_ffn": f"{{type: gated_ffn, hidden: {H}}}",
    "biased": f"{{type: gated_ffn, hidden: {H}, bias: true, activation: gelu}}",
    "ffn": f"{{type: ffn, hidden: {H}}}",
    "bare": f"{{type: ffn, hidden: {H}, bias: false, activation: relu}}",
}
GPT_OSS = f"{{type: gated_ffn, hidden: {H}, bias: true, activation: clamped_silu, up_limit: 7, up_offset: 1}}"


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> None:
    torch._dynamo.reset()


def mixture(
    router: str, expert: str = "gated_ffn", shared: str = "none", routers: Mapping[str, str] = ROUTERS, weighed: str = "outputs"
) -> Any:
    """Return a recipe of one mixture as a float64 module, all that can be read of it wired out."""
    text = f"recipe: one\ninputs:\n  x: float[batch, time, {D}]\ngraph:\n  moe: {{type: moe, experts: {E}, "
    text += f"expert: {EXPERTS.get(expert, expert)}, router: {routers[router]}, shared: {shared}, weighed: {weighed}}}\n"
    text += "outputs: {y: moe, load_balancing: moe.load_balancing, router_z: moe.router_z, load: moe.load}\n"
    return composer.load(text).compile(seed=0).double()


def positions(batch: int = B, time: int = T, seed: int = 1) -> torch.Tensor:
    return torch.randn(batch, time, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def visits(router: str, logits: torch.Tensor) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """Return which experts each position visits and with which weights, by loops over logits [B, T, E]."""
    found: dict[tuple[int, int], list[tuple[int, Any]]] = {(b, t): [] for b in range(B) for t in range(T)}
    for b in range(B):
        taken = [0] * E
        for t in range(T):
            soft = logits[b, t].softmax(-1)
            best = sorted(range(E), key=lambda e: -logits[b, t, e].item())
            match router:
                case "mixtral" | "noisy":
                    total = soft[best[0]] + soft[best[1]]
                    found[b, t] = [(e, soft[e] / total) for e in best[:2]]
                case "plain":
                    found[b, t] = [(e, soft[e]) for e in best[:3]]
                case "one":
                    found[b, t] = [(best[0], soft[best[0]])]
                case "sigmoid":
                    scores = logits[b, t].sigmoid()
                    found[b, t] = [(e, 2.5 * scores[e] / (scores[best[0]] + scores[best[1]])) for e in best[:2]]
                case "eps":
                    scores = logits[b, t].sigmoid()
                    found[b, t] = [(e, scores[e] / (scores[best[0]] + scores[best[1]] + 0.125)) for e in best[:2]]
                case "groups":
                    of = [e for e in range(E) if e // 2 == best[0] // 2]
                    found[b, t] = [(e, soft[e]) for e in of]
                case "single":  # of one expert each, so that the three best are chosen
                    scores = logits[b, t].sigmoid()
                    found[b, t] = [(e, scores[e] / sum(scores[other] for other in best[:3])) for e in best[:3]]
                case "top two":
                    scores = logits[b, t].sigmoid()
                    group = int(scores[2] + scores[3] > scores[0] + scores[1])
                    chosen = max((2 * group, 2 * group + 1), key=lambda e: scores[e].item())
                    found[b, t] = [(chosen, scores[chosen])]
                case "switch":
                    taken[best[0]] += 1
                    found[b, t] = [(best[0], soft[best[0]])] if taken[best[0]] <= 2 else []
        if router == "experts":
            for e in range(E):
                p = logits[b].softmax(-1)[:, e]
                for t in sorted(range(T), key=lambda t: -p[t].item())[:4]:  # 7 · 2 / 4, rounded up
                    found[b, t].append((e, p[t]))
    return found


def by_loop(router: str, expert: str, p: dict[str, torch.Tensor], x: torch.Tensor, weighed: str = "outputs") -> torch.Tensor:
    """Compute the mixture position after position, visit after visit."""

    def linear(name: str, e: int, v: torch.Tensor) -> torch.Tensor:
        bias = p.get(f"expert.{name}.bias")
        return F.linear(v, p[f"expert.{name}.weight"][e], None if bias is None else bias[e])

    curve = {"gated_ffn": F.silu, "biased": F.gelu, "ffn": F.gelu, "bare": F.relu}[expert]
    y = torch.zeros_like(x)
    for (b, t), chosen in visits(router, x @ p["gate.weight"].T).items():
        for e, weight in chosen:
            v = x[b, t] * (weight if weighed == "inputs" else 1)
            gate = "expert.gate.weight" in p
            h = curve(linear("gate", e, v)) * linear("up", e, v) if gate else curve(linear("up", e, v))
            y[b, t] = y[b, t] + linear("down", e, h) * (weight if weighed == "outputs" else 1)
    return y


@pytest.mark.parametrize("weighed", ["outputs", "inputs"])
@pytest.mark.parametrize("expert", EXPERTS)
@pytest.mark.parametrize("router", ROUTERS)
def test_a_mixture_is_the_loop_over_its_visits(router: str, expert: str, weighed: str) -> None:
    """Its output and every gradient, in float64 and in evaluation, where nothing is noisy."""
    model = mixture(router, expert, weighed=weighed).eval()
    parameters = dict(model.moe.named_parameters())
    x = positions().requires_grad_()
    results = []
    for run in (lambda: model(x).y, lambda: by_loop(router, expert, parameters, x, weighed)):
        model.zero_grad()
        x.grad = None
        y = run()
        y.sin().sum().backward()
        results.append((y.detach(), x.grad, {name: each.grad for name, each in parameters.items() if each.grad is not None}))
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("router", ROUTERS)
def test_a_router_with_a_bias_routes_by_shifted_logits(router: str) -> None:
    """As one without, whose logits are given by one more channel that is always 1."""
    plain, biased = mixture(router).eval(), mixture(router, routers=BIASED).eval()
    state = dict(biased.moe.state_dict())
    assert {name.removesuffix(".bias") for name in state if name.endswith(".bias")} == {*maps_of(router)}
    x = positions()
    x[..., -1] = 1
    for name in maps_of(router):
        state[f"{name}.bias"] = torch.linspace(-0.5, 0.7, E, dtype=torch.float64)
    biased.moe.load_state_dict(state)
    for name in maps_of(router):
        state[f"{name}.weight"] = state[f"{name}.weight"].clone()
        state[f"{name}.weight"][:, -1] += state.pop(f"{name}.bias")
    plain.moe.load_state_dict(state)
    torch.testing.assert_close(biased(x).y, plain(x).y, rtol=0, atol=1e-12)


def maps_of(router: str) -> tuple[str, ...]:
    """Return the maps of a router."""
    return ("gate", "noise") if router == "noisy" else ("gate",)


@torch.no_grad()
def test_a_mixture_is_that_of_gpt_oss() -> None:
    """With inputs so large that each bound is passed, on either side."""
    theirs = GptOssMLP(GptOssConfig(hidden_size=D, intermediate_size=H, num_local_experts=E, num_experts_per_tok=2)).double()
    for number, parameter in enumerate(theirs.parameters()):
        parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    ours = mixture("mixtral", GPT_OSS, routers=BIASED)
    gates, biases = theirs.experts.gate_up_proj.mT, theirs.experts.gate_up_proj_bias
    state = {
        "gate.weight": theirs.router.weight, "gate.bias": theirs.router.bias,
        "expert.gate.weight": gates[:, ::2], "expert.gate.bias": biases[:, ::2],
        "expert.up.weight": gates[:, 1::2], "expert.up.bias": biases[:, 1::2],
        "expert.down.weight": theirs.experts.down_proj.mT, "expert.down.bias": theirs.experts.down_proj_bias,
    }  # fmt: skip
    ours.moe.load_state_dict(state, strict=True)
    x = 6 * positions()
    up = x @ state["expert.up.weight"][0].T
    assert (up > 7).any() and (up < -7).any() and (x @ state["expert.gate.weight"][0].T > 7).any()
    torch.testing.assert_close(ours(x).y, theirs(x)[0], rtol=0, atol=1e-10)


@torch.no_grad()
def test_a_mixture_is_that_of_transformers() -> None:
    """Mixtral's, with the same weights, and its balancing loss."""
    config = MixtralConfig(hidden_size=D, intermediate_size=H, num_local_experts=E, num_experts_per_tok=2)
    theirs = MixtralSparseMoeBlock(config)
    for number, parameter in enumerate(theirs.parameters()):
        parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    ours = mixture("mixtral").float()
    gate, up = theirs.experts.gate_up_proj.chunk(2, dim=1)
    state = {"gate.weight": theirs.gate.weight, "expert.gate.weight": gate, "expert.up.weight": up}
    ours.moe.load_state_dict({**state, "expert.down.weight": theirs.experts.down_proj}, strict=True)
    x = positions().float()
    torch.testing.assert_close(ours(x).y, theirs(x), rtol=0, atol=1e-5)
    logits = theirs.gate(x)[0]
    torch.testing.assert_close(ours(x).load_balancing, load_balancing_loss_func((logits,), E, 2))
    torch.testing.assert_close(ours(x).router_z, torch.logsumexp(logits, -1).square().mean())


VALID = """
recipe: valid
inputs: {{x: "float[batch, time, 6]", valid: "bool[batch, time]"}}
graph:
  every: {{type: moe, experts: 4, expert: {{type: ffn, hidden: 5}}, router: {router}, in: x}}
  moe: {{type: moe, experts: 4, expert: {{type: ffn, hidden: 5}}, router: {router}, in: {{x: x, valid: valid}}}}
outputs: {{y: moe, balance: moe.load_balancing, load: moe.load, before: every.load_balancing, load_before: every.load}}
"""


@pytest.mark.parametrize("router", ROUTERS)
def test_load_is_counted_over_valid_positions(router: str) -> None:
    """As transformers counts it with an `attention_mask`, and in a loop; all that are valid are as none that is wired."""
    model = composer.load(VALID.format(router=ROUTERS[router])).compile(seed=0).double().eval()
    model.every.load_state_dict(model.moe.state_dict())
    x, valid = positions(), torch.arange(T) < torch.tensor([[T], [4], [2]])
    full = model(x, torch.ones(B, T, dtype=torch.bool))
    torch.testing.assert_close((full.balance, full.load), (full.before, full.load_before), rtol=0, atol=1e-12)
    none = model(x, torch.zeros(B, T, dtype=torch.bool))
    assert none.balance == 0 and not none.load.any()
    found = model(x, valid)
    assert found.y.equal(full.y)
    logits = model.moe.gate(x)
    if router in ("mixtral", "plain"):
        theirs = load_balancing_loss_func(
            (logits.flatten(0, 1),), E, 2 if router == "mixtral" else 3, attention_mask=valid.double()
        )
        torch.testing.assert_close(found.balance.float(), theirs.float())
    if router != "switch":  # whose capacity has visits dropped that it counts
        load = torch.zeros(E, dtype=torch.float64)
        for (b, t), chosen in visits(router, logits).items():
            for e, _ in chosen:
                load[e] += bool(valid[b, t]) / int(valid.sum())
        torch.testing.assert_close(found.load, load, rtol=0, atol=1e-12)


GIVEN = """
recipe: given
inputs: {{x: "float[batch, time, 6]", logits: "float[batch, time, 4]"}}
graph:
  gate: {{type: linear, out: 4, bias: false, in: logits}}
  moe: {{type: moe, experts: 4, expert: {{type: ffn, hidden: 5}}, router: {router}, in: {{x: x, logits: gate}}}}
outputs: {{y: moe, routing: moe.routing}}
"""


@pytest.mark.parametrize("router", ["mixtral", "sigmoid", "switch", "experts"])
def test_logits_may_be_given_in_place_of_those_of_the_gate(router: str) -> None:
    """The router has no gate then, and chooses by them; what it chose has its weights in `routing`, all else 0."""
    model = composer.load(GIVEN.format(router=ROUTERS[router])).compile(seed=0).double()
    assert not any("gate" in name for name, _ in model.moe.named_parameters())
    x, given = positions(), torch.randn(B, T, E, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    logits = model.gate(given)
    expected = torch.zeros(B, T, E, dtype=torch.float64)
    for (b, t), chosen in visits(router, logits).items():
        for e, weight in chosen:
            expected[b, t, e] = weight
    y, routing, _ = model(x, given)
    torch.testing.assert_close(routing, expected, rtol=0, atol=1e-12)
    hidden = F.gelu(torch.einsum("btd,ehd->bteh", x, model.moe.expert.up.weight) + model.moe.expert.up.bias)
    each = torch.einsum("bteh,edh->bted", hidden, model.moe.expert.down.weight) + model.moe.expert.down.bias
    torch.testing.assert_close(y, (expected[..., None] * each).sum(2), rtol=0, atol=1e-12)
    assert model.gate.weight.grad is None
    y.sum().backward()
    assert model.gate.weight.grad is not None and model.gate.weight.grad.any()


@pytest.mark.parametrize(
    ("router", "message"),
    [
        ("{type: top_k_router, top_k: 2, bias: true}", "is a bias of `gate`, and `logits` stands in its place"),
        ("{type: switch_router, capacity: 2, jitter: 0.1}", "is noise of what `gate` reads, and `logits` stands in its place"),
        ("{type: hierarchical_router, groups: 2}", "needs a router that takes logits"),
    ],
)
def test_what_given_logits_would_leave_unused_is_refused(router: str, message: str) -> None:
    """So is a router that has no use for them."""
    (found,) = composer.load(GIVEN.format(router=router)).check()
    assert message in found.message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("groups: 3", "4 experts cannot be split into 3 groups"),
        ("groups: 1", "2 of 1 groups cannot be selected"),
        ("groups: 2, top_k: 3", "a position cannot be assigned to 3 of the 2 experts of a group"),
    ],
)
def test_groups_that_cannot_be_made_are_refused(fields: str, message: str) -> None:
    """At the field of the router."""
    moe = f"{{type: moe, experts: 4, expert: {{type: ffn, hidden: 4}}, router: {{type: hierarchical_router, {fields}}}}}"
    (found,) = composer.load(f"recipe: r\ninputs: {{x: 'float[batch, time, 8]'}}\ngraph: {{a: {moe}}}\n").check()
    assert message in found.message


@torch.no_grad()
def test_an_expert_that_is_added_changes_nothing_until_its_logit_is_raised() -> None:
    """Bit for bit, with a bias of -∞; raised, it is selected."""
    before = mixture("mixtral", routers=BIASED).float().eval()
    recipe = before.recipe.text.replace(f"experts: {E}", f"experts: {E + 1}")
    after, x = composer.load(recipe).compile(seed=1).eval(), positions(64, 33).float()
    for name, tensor in after.moe.state_dict().items():
        tensor[:E] = before.moe.state_dict()[name]
    after.moe.gate.bias[E] = -torch.inf
    assert torch.equal(after(x).y, before(x).y)
    assert after(x).load[E] == 0
    after.moe.gate.bias[E] = 9
    assert not torch.equal(after(x).y, before(x).y)
    assert after(x).load[E] == 1


def test_what_is_shared_is_visited_by_all() -> None:
    """And added as it is."""
    model = mixture("switch", shared=EXPERTS["ffn"]).eval()
    x = positions()
    y = by_loop("switch", "gated_ffn", dict(model.moe.named_parameters()), x) + model.moe.shared(x)
    torch.testing.assert_close(model(x).y, y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("router", ["mixtral", "sigmoid", "noisy", "switch"])
def test_the_balancing_loss_moves_the_router_alone(router: str) -> None:
    """Toward equal shares: following it lowers the largest load."""
    model = mixture(router).eval()
    x = positions(8, 32)
    before = model(x).load.max()
    gate = model.moe.gate.weight
    for _ in range(200):
        model.zero_grad(set_to_none=True)
        model(x).load_balancing.backward()
        assert all(parameter.grad is None for name, parameter in model.named_parameters() if name[4:] != "gate.weight")
        with torch.no_grad():
            gate -= 0.5 * gate.grad
    assert model(x).load.max() < before


def test_loads_are_shares_of_positions() -> None:
    """Each counts once for each expert that it wants."""
    for router, sum_ in {"mixtral": 2, "plain": 3, "one": 1, "switch": 1, "experts": 4 * 4 / 7}.items():
        torch.testing.assert_close(mixture(router)(positions()).load.sum().double(), torch.tensor(sum_, dtype=torch.float64))


def test_noise_changes_who_is_visited_in_training_alone() -> None:
    """Two calls in training differ, two in evaluation do not."""
    model, x = mixture("noisy").train(), positions()
    assert not torch.equal(model(x).y, model(x).y)
    model.eval()
    assert torch.equal(model(x).y, model(x).y)


@torch.no_grad()
def test_jitter_moves_what_the_choice_is_made_from_in_training_alone() -> None:
    """Each number by a factor within 0.3 of 1, drawn evenly; what the experts read stays as it is."""
    recipe = mixture("switch").recipe.text.replace("capacity: 2", "capacity: 7, jitter: 0.3")
    model, x, read = composer.load(recipe).compile(seed=0).double(), positions(64), []
    model.moe.gate.register_forward_pre_hook(lambda _, given: read.append(given[0] / x))
    model.moe.expert.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    model.train()(x)
    factors, rows = read
    assert 0.7 <= factors.min() < 0.71 and 1.29 < factors.max() <= 1.3
    assert factors.std().item() == pytest.approx(0.6 / 12**0.5, rel=0.05)
    assert {tuple(row) for row in rows.tolist()} == {tuple(row) for row in x.flatten(0, 1).tolist()}
    read.clear()
    model.eval()(x)
    assert torch.equal(read[0], torch.ones_like(x))


@torch.no_grad()
@pytest.mark.parametrize("router", ROUTERS)
def test_no_position_visits_an_expert_that_it_was_not_sent_to(router: str) -> None:
    """Three maps for each visit, and none for what a full expert does not take."""
    model, x = mixture(router).eval(), positions()
    wanted = sum(map(len, visits(router, x @ model.moe.gate.weight.T).values()))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        model(x)
    shapes = [event.input_shapes for event in profile.events() if event.name == "aten::mm"]
    assert sum(left[0] for left, right, *_ in shapes if E not in right) == 3 * wanted  # the router's own map has E rows


WRITER = """
recipe: writer
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 6}
  moe: {type: residual, body: {type: moe, experts: 3, expert: {type: ffn, hidden: 4}, router: {type: switch_router, capacity: 2}}}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


@torch.no_grad()
def test_a_session_goes_on_counting_what_experts_have_taken() -> None:
    """Capacity is of the whole text, not of each call."""
    model = composer.load(WRITER).compile(seed=0).eval()
    tokens = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(0))
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split(2, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens).logits)


@pytest.mark.parametrize(
    "router",
    [pytest.param(router, marks=pytest.mark.exhaustive if place else pytest.mark.slow) for place, router in enumerate(ROUTERS)],
)
def test_training_compiles_without_a_break(router: str) -> None:
    """Output and gradients of the compiled mixture are those of the mixture itself, at another length too."""
    model = mixture(router).eval()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for time in (T, 9):
        x, grads = positions(time=time), []
        for run in (model, compiled):
            model.zero_grad()
            run(x).y.sin().sum().backward()
            grads.append([p.grad.clone() for name, p in model.named_parameters() if "noise" not in name])
        torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.slow
def test_autocast_computes_the_experts_in_bfloat16() -> None:
    """In a graph and out of it, forward and backward."""
    model, x = mixture("mixtral").float(), positions().float()
    for run in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = run(x).y
        assert y.dtype == torch.bfloat16
        torch.testing.assert_close(y.float(), model(x).y, rtol=0.05, atol=0.05)
        y.float().sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("router", ["{type: top_k_router, top_k: 1}", "{type: noisy_top_k_router, top_k: 1}"])
def test_a_router_that_could_not_learn_is_refused(router: str) -> None:
    """The normalized weight of one expert has no gradient."""
    moe = f"{{type: moe, experts: 4, expert: {{type: ffn, hidden: 4}}, router: {router}}}"
    (found,) = composer.load(f"recipe: r\ninputs: {{x: 'float[batch, time, 8]'}}\ngraph: {{a: {moe}}}\n").check()
    marked = found.span.source.lines[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1]
    assert (found.code, marked) == ("rejected", "1")
