"""Primitives, activations, norms, embedding, feed-forward and residual, against torch, transformers and closed forms."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers.activations import ACT2FN, XIELUActivation
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm, Gemma3TextScaledWordEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXMLP
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm
from transformers.models.mamba2.modeling_mamba2 import MambaRMSNormGated
from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P

import composer
from blocks.activations.rectifiers import Elu, LeakyRelu, Relu, ReluSquared, Softplus
from blocks.activations.self_gated import ClampedSilu, Gelu, GeluTanh, QuickGelu, Silu
from blocks.activations.squashing import Sigmoid, Tanh
from blocks.activations.xielu import Xielu
from blocks.core import BlockError
from blocks.embedding.embedding import Embedding
from blocks.feed_forward.ffn import FeedForward
from blocks.feed_forward.gated_ffn import GatedFeedForward
from blocks.norms.layernorm import LayerNorm
from blocks.norms.rmsnorm import RMSNorm
from blocks.primitives.combine import Add, Concat, Multiply, WeightedSum
from blocks.primitives.linear import Linear
from blocks.primitives.parameter import Parameter
from blocks.primitives.pointwise import Dropout, Identity, Scale
from blocks.residual.layer_scale import LayerScale
from blocks.residual.residual import Residual
from tests.blocks.simple_build import build, run_graph, scope_of, weights_of

B, T, D, H, V = 2, 3, 8, 12, 20


@pytest.fixture(autouse=True)
def seed():
    """The same numbers in every run."""
    torch.manual_seed(0)


def randomize(module):
    """Set weights that are neither zero nor one, so that one that is not used shows."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.5, 1.0)
    return module


def x():
    """Return a stream [B, T, D]."""
    return torch.randn(B, T, D)


def gpt_oss_gate(gate):
    """Return the activation inside GPT-OSS's experts: the half that is gated is 0, to which they add 1."""
    half = torch.stack((gate, torch.zeros_like(gate)), dim=-1).flatten(-2)
    return GptOssExperts._apply_gate(SimpleNamespace(alpha=1.702, limit=7.0), half)


@pytest.mark.parametrize(
    ("activation", "reference"),
    [
        (Relu(), lambda x: (x + x.abs()) / 2),
        (ReluSquared(), ACT2FN["relu2"]),
        (LeakyRelu(), lambda x: torch.where(x > 0, x, 0.01 * x)),
        (LeakyRelu(slope=0.2), torch.nn.LeakyReLU(0.2)),
        (Elu(), lambda x: torch.where(x > 0, x, torch.exp(x) - 1)),
        (Elu(alpha=0.5), torch.nn.ELU(0.5)),
        (Softplus(), lambda x: torch.log1p(torch.exp(x))),
        (Sigmoid(), lambda x: 1 / (1 + torch.exp(-x))),
        (Tanh(), lambda x: 1 - 2 / (torch.exp(2 * x) + 1)),
        (Gelu(), lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x)),
        (GeluTanh(), ACT2FN["gelu_new"]),
        (QuickGelu(), ACT2FN["quick_gelu"]),
        (Silu(), lambda x: x / (1 + torch.exp(-x))),
        (ClampedSilu(), gpt_oss_gate),
        (ClampedSilu(alpha=1.0, limit=100.0), ACT2FN["silu"]),
        (Xielu(), XIELUActivation(dtype=torch.float32)),
    ],
    ids=lambda value: value.kind if hasattr(value, "kind") else "",
)
def test_activation_equals_its_reference(activation, reference):
    """On both sides of zero and of every clamp."""
    points = torch.linspace(-9, 9, 200)
    torch.testing.assert_close(build(activation)(points), reference(points))


def test_xielu_learns_both_of_its_numbers_far_from_zero():
    """Where eˣ overflows, the gradients stay finite and those of both weights equal the ones of transformers."""
    ours, theirs = build(Xielu()), XIELUActivation(dtype=torch.float32)
    ours.load_state_dict({name: theirs.state_dict()[name] for name in ("alpha_p", "alpha_n")})
    for module in (ours, theirs):
        points = torch.tensor([-200.0, -1.0, 1.0, 200.0], requires_grad=True)
        module(points).sum().backward()
        module.points = points.grad
    assert ours.points.isfinite().all()
    torch.testing.assert_close(ours.points, theirs.points)
    torch.testing.assert_close(ours.alpha_p.grad, theirs.alpha_p.grad)
    torch.testing.assert_close(ours.alpha_n.grad, theirs.alpha_n.grad)


def test_linear_is_the_sum_of_products_and_a_bias():
    """`y = x Wᵀ + b`, with and without `b`."""
    stream = x()
    linear = build(Linear(out=H), dim=D)
    torch.testing.assert_close(linear(stream), torch.einsum("btd,hd->bth", stream, linear.weight) + linear.bias)
    assert set(build(Linear(out=H, bias=False), dim=D).state_dict()) == {"weight"}


def test_linear_declares_the_start_that_torch_gives_it():
    """The declared bound of the uniform distribution is the one that torch draws from."""
    init = weights_of(Linear(out=4000), {})["weight"].init
    bound = eval(init.value, {"sqrt": math.sqrt, "dim": D})
    drawn = build(Linear(out=4000), dim=D).weight.abs().max().item()
    assert 0.999 * bound < drawn <= bound


@pytest.mark.parametrize(("block", "expected"), [(Add(), [9.0, 12.0]), (Multiply(), [15.0, 48.0])])
def test_many_streams_become_one(block, expected):
    """The module and the inlined expression both give what arithmetic gives."""
    streams = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), torch.tensor([5.0, 6.0])]
    assert build(block)(*streams).tolist() == expected
    names, sign = block.inline({}).strip("{}").split(":")
    assert names == "xs"
    assert eval(sign.join("abc"), dict(zip("abc", streams, strict=True))).tolist() == expected
    assert block.broadcasts


def test_weighted_sum_starts_as_the_mean_and_learns_each_factor():
    """One factor per input, each with its own gradient."""
    streams = [x() for _ in range(3)]
    module = build(WeightedSum(), inputs=3)
    torch.testing.assert_close(module(*streams), (streams[0] + streams[1] + streams[2]) / 3)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([2.0, -1.0, 0.5]))
    torch.testing.assert_close(module(*streams), 2 * streams[0] - streams[1] + 0.5 * streams[2])
    module(*streams).sum().backward()
    torch.testing.assert_close(module.weight.grad, torch.stack([stream.sum() for stream in streams]))


def test_concat_grows_the_axis_it_is_told():
    """Each input comes back as a slice."""
    first, second = torch.randn(B, T, D), torch.randn(B, T + 1, D)
    y = build(Concat(axis="time"), dim=-2)(first, second)
    assert torch.equal(y[:, :T], first)
    assert torch.equal(y[:, T:], second)


def test_identity_and_scale_change_nothing_and_the_size():
    """As modules and inlined."""
    stream = x()
    assert build(Identity())(stream) is stream
    assert Identity().inline({}).format(x="h") == "h"
    assert torch.equal(build(Scale(by=-2.0))(stream), -(stream + stream))
    assert eval(Scale(by=-2.0).inline({}).format(x="h", by=-2.0), {"h": 3.0}) == -6.0


def test_dropout_keeps_the_mean_and_sleeps_outside_of_training():
    """A share p is zero, the rest is 1 / (1 - p) of what it was."""
    module, ones = build(Dropout(p=0.25)), torch.ones(20_000)
    dropped = module(ones)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert dropped.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert torch.equal(module.eval()(ones), ones)


def test_parameter_has_the_shape_and_start_that_are_written():
    """Drawn with the given deviation, or constant; its type spells its shape."""
    drawn = build(Parameter(shape=(50, 200), std=0.5))()
    assert drawn.shape == (50, 200)
    assert drawn.std().item() == pytest.approx(0.5, rel=0.05)
    assert torch.equal(build(Parameter(shape=(D,), init="ones"))(), torch.ones(D))
    assert torch.equal(build(Parameter(shape=(), init="zeros"))(), torch.zeros(()))
    assert Parameter(shape=(1, D)).output_types({}, {}) == {"y": "float[1, 8]"}


def test_embedding_is_a_row_of_its_table_times_a_factor():
    """With a factor as in Gemma, without one as torch's own; transformers and torch agree."""
    ids = torch.randint(V, (B, T))
    plain = build(Embedding(vocab=V, dim=D))
    assert torch.equal(plain(ids), plain.weight[ids])
    scaled = build(Embedding(vocab=V, dim=D, scale=D**0.5))
    gemma = Gemma3TextScaledWordEmbedding(V, D, None, embed_scale=D**0.5)
    gemma.load_state_dict(scaled.state_dict(), strict=False)
    torch.testing.assert_close(scaled(ids), gemma(ids))


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_padding_row_receives_no_gradient(scale):
    """All other rows that are read do."""
    module = build(Embedding(vocab=V, dim=D, padding_idx=5, scale=scale))
    module(torch.tensor([4, 5, 6])).sum().backward()
    assert module.weight.grad[[4, 6]].eq(scale).all()
    assert module.weight.grad[5].eq(0).all()


def test_padding_row_of_a_plain_embedding_starts_at_zero():
    """As torch's own does."""
    assert build(Embedding(vocab=V, dim=D, padding_idx=5)).weight[5].eq(0).all()


def test_padding_outside_of_the_vocabulary_is_rejected():
    """The last id is fine."""
    Embedding(vocab=V, dim=D, padding_idx=V - 1).check({}, frozenset())
    with pytest.raises(BlockError, match="id 20 is not among the 20 ids") as caught:
        Embedding(vocab=V, dim=D, padding_idx=V).check({}, frozenset())
    assert caught.value.field == "padding_idx"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_equal_those_of_published_models(dtype):
    """Llama's and Gemma's RMSNorm, and torch's LayerNorm; Gemma's bit for bit, as 1 + weight is what bfloat16 loses."""
    stream = (5 * x()).to(dtype)
    pairs = [
        (RMSNorm(eps=1e-3), LlamaRMSNorm(D, 1e-3), {}),
        (LayerNorm(eps=1e-3, unit_offset=True), NemotronLayerNorm1P(D, 1e-3), {}),
        (RMSNorm(eps=1e-3, unit_offset=True), Gemma3RMSNorm(D, 1e-3), {"atol": 0, "rtol": 0}),
        (LayerNorm(eps=1e-3), nn.LayerNorm(D, 1e-3), {}),
        (LayerNorm(bias=False), nn.LayerNorm(D, bias=False), {}),
        (LayerNorm(affine=False), nn.LayerNorm(D, elementwise_affine=False), {}),
    ]
    for part, reference, tolerance in pairs:
        ours = randomize(build(part, dim=D)).to(dtype)
        reference.to(dtype).load_state_dict(ours.state_dict())
        torch.testing.assert_close(ours(stream), reference(stream), **tolerance)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("form", [{}, {"unit_offset": True}, {"eps_inside": False}, {"affine": False}])
def test_groups_of_channels_are_normalized_apart(groups, form):
    """Each as a stream of its own, with its part of the gain; in Mamba-2 too, where the gate is applied before."""
    stream = x()
    ours = randomize(build(RMSNorm(groups=groups, eps=0.5, **form), dim=D))
    parts = []
    for place, part in enumerate(stream.chunk(groups, -1)):
        alone = build(RMSNorm(eps=0.5, **form), dim=D // groups)
        alone.load_state_dict({name: weight.chunk(groups)[place] for name, weight in ours.state_dict().items()})
        parts.append(alone(part))
    torch.testing.assert_close(ours(stream), torch.cat(parts, -1))
    if not form:
        theirs = MambaRMSNormGated(D, D // groups, 0.5)
        theirs.load_state_dict(ours.state_dict())
        torch.testing.assert_close(ours(stream), theirs(stream))


def test_unit_offset_starts_as_a_gain_of_one():
    """Weight 0 and weight 1 say the same."""
    stream = x()
    torch.testing.assert_close(build(LayerNorm(unit_offset=True), dim=D)(stream), build(LayerNorm(), dim=D)(stream))
    torch.testing.assert_close(build(RMSNorm(unit_offset=True), dim=D)(stream), build(RMSNorm(), dim=D)(stream))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_eps_outside_of_the_root_is_added_to_the_deviation(affine, bias):
    """LayerNorm in a loop over positions, with each choice of weights."""
    stream = x().double()
    module = randomize(build(LayerNorm(eps=0.5, eps_inside=False, affine=affine, bias=bias), dim=D)).double()
    y = module(stream)
    for b in range(B):
        for t in range(T):
            row = stream[b, t].tolist()
            mean = sum(row) / D
            deviation = math.sqrt(sum((value - mean) ** 2 for value in row) / D)
            for d in range(D):
                gain = module.weight[d].item() if affine else 1.0
                shift = module.bias[d].item() if affine and bias else 0.0
                assert y[b, t, d].item() == pytest.approx((row[d] - mean) / (deviation + 0.5) * gain + shift)


@pytest.mark.parametrize("offset", [0, 1])
def test_eps_outside_of_the_root_is_added_to_the_root_mean_square(offset):
    """RMSNorm of (3, 4): the root of 12.5, plus eps."""
    module = randomize(build(RMSNorm(eps=0.5, eps_inside=False, unit_offset=bool(offset)), dim=2)).double()
    y = module(torch.tensor([3.0, 4.0], dtype=torch.float64))
    torch.testing.assert_close(y, torch.tensor([3.0, 4.0]).double() / (12.5**0.5 + 0.5) * (module.weight + offset))


def test_a_norm_of_zeros_is_finite():
    """In every form, also in bfloat16, where the gradient must be finite too."""
    outside = (LayerNorm(eps_inside=False), RMSNorm(eps_inside=False))
    for part in (LayerNorm(), LayerNorm(unit_offset=True), RMSNorm(), RMSNorm(unit_offset=True), *outside):
        zeros = torch.zeros(1, D, dtype=torch.bfloat16, requires_grad=True)
        build(part, dim=D).bfloat16()(zeros).sum().backward()
        assert zeros.grad.isfinite().all()


def test_ffn_equals_that_of_gpt_neox():
    """Two maps with biases and a GELU, four times as wide unless written."""
    config = SimpleNamespace(hidden_size=D, intermediate_size=4 * D, hidden_act="gelu")
    ours, theirs = build(FeedForward(), dim=D), GPTNeoXMLP(config)
    names = {"up": "dense_h_to_4h", "down": "dense_4h_to_h"}
    theirs.load_state_dict({f"{names[k.split('.')[0]]}.{k.split('.')[1]}": v for k, v in ours.state_dict().items()})
    stream = x()
    torch.testing.assert_close(ours(stream), theirs(stream))


def test_gated_ffn_equals_that_of_llama():
    """Three maps without biases and a SiLU."""
    config = SimpleNamespace(hidden_size=D, intermediate_size=H, hidden_act="silu", mlp_bias=False)
    ours, theirs = build(GatedFeedForward(hidden=H), dim=D), LlamaMLP(config)
    theirs.load_state_dict({k.replace(".", "_proj."): v for k, v in ours.state_dict().items()})
    stream = x()
    torch.testing.assert_close(ours(stream), theirs(stream))
    assert len(build(GatedFeedForward(hidden=H, bias=True), dim=D).state_dict()) == 6


def test_gated_ffn_clamps_and_shifts_what_is_not_gated():
    """Each by itself, and both as the experts of GPT-OSS do."""
    for limit, offset in ((None, 0.5), (0.3, 0.0), (0.3, 1.0)):
        module, stream = build(GatedFeedForward(hidden=H, up_limit=limit, up_offset=offset), dim=D), x()
        up = module.up(stream)
        up = (up if limit is None else up.clamp(-limit, limit)) + offset
        torch.testing.assert_close(module(stream), module.down(nn.functional.silu(module.gate(stream)) * up))


def test_ffn_drops_inside_the_layer_in_training_only():
    """With an identity for the way back, the zeros of the inner layer are seen."""
    module = build(FeedForward(hidden=D, dropout=0.5, activation=Sigmoid()), dim=D)
    module.down = nn.Identity()
    stream = torch.randn(500, D)
    inner = torch.sigmoid(module.up(stream))
    dropped = module(stream)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    torch.testing.assert_close(dropped[dropped != 0], 2 * inner[dropped != 0])
    torch.testing.assert_close(module.eval()(stream), inner)


def test_layer_scale_multiplies_each_channel():
    """All channels alike at first, each by its own factor later."""
    stream, module = x(), build(LayerScale(init=0.1), dim=D)
    torch.testing.assert_close(module(stream), stream / 10)
    randomize(module)
    torch.testing.assert_close(module(stream), torch.einsum("btd,d->btd", stream, module.weight))


NORM = LayerNorm(affine=False)


def normed(stream):
    """Return the layer normalization, by its definition."""
    return (stream - stream.mean(-1, keepdim=True)) / (stream.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()


@pytest.mark.parametrize(
    ("fields", "formula"),
    [
        ({}, lambda x, f: x + f(x)),
        ({"norm": NORM}, lambda x, f: x + f(normed(x))),
        ({"norm": NORM, "placement": "post"}, lambda x, f: normed(x + f(x))),
        ({"norm": NORM, "placement": "sandwich"}, lambda x, f: x + normed(f(normed(x)))),
        ({"norm": NORM, "placement": "reordered"}, lambda x, f: x + normed(f(x))),
        ({"branch_norm": NORM, "post_norm": NORM}, lambda x, f: normed(x + normed(f(x)))),
        ({"branch_norm": NORM, "scale": 0.5, "layer_scale": 3.0}, lambda x, f: x + 1.5 * normed(f(x))),
        ({"skip_scale": 2.0, "scale": -1.0}, lambda x, f: 2 * x - f(x)),
        ({"post_norm": NORM, "skip_scale": 2.0}, lambda x, f: normed(2 * x + f(x))),
    ],
)
def test_residual_expands_to_its_formula(fields, formula):
    """Every placement of the norm, every norm, every factor."""
    body, stream = nn.Linear(D, D), x()
    torch.testing.assert_close(run_graph(Residual(body=Linear(out=D), **fields), stream, body), formula(stream, body))


def test_residual_drops_from_the_branch_alone():
    """Where the branch is zero, the input is left."""
    stream = torch.randn(100, D)
    y = run_graph(Residual(body=Identity(), dropout=0.5, scale=3.0), stream, nn.Identity())
    kept = y != stream
    assert kept.float().mean().item() == pytest.approx(0.5, abs=0.1)
    torch.testing.assert_close(y[kept], 7 * stream[kept])


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"placement": "post"}, "placement"),
        ({"placement": "sandwich", "norm": NORM, "branch_norm": NORM}, "branch_norm"),
        ({"placement": "reordered", "norm": NORM, "post_norm": NORM}, "post_norm"),
    ],
)
def test_placement_without_one_norm_is_rejected(fields, field):
    """It needs one norm, and no second one that is placed by hand."""
    with pytest.raises(BlockError) as caught:
        Residual(body=Identity(), **fields).check({}, frozenset())
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("part", "sizes"),
    [
        (Linear(out=H), {"dim": D}),
        (Linear(out=H, bias=False), {"dim": D}),
        (Embedding(vocab=V, dim=D), {}),
        (Embedding(vocab=V, dim=D, scale=2.0), {}),
        (LayerNorm(), {"dim": D}),
        (LayerNorm(bias=False), {"dim": D}),
        (LayerNorm(affine=False), {"dim": D}),
        (LayerNorm(eps_inside=False), {"dim": D}),
        (LayerNorm(bias=False, unit_offset=True), {"dim": D}),
        (RMSNorm(), {"dim": D}),
        (RMSNorm(affine=False), {"dim": D}),
        (RMSNorm(affine=False, unit_offset=True), {"dim": D}),
    ],
)
def test_a_leaf_has_exactly_the_parameters_it_declares(part, sizes):
    """Names and shapes, also where a module of torch stands in."""
    scope = scope_of(part, sizes)
    declared = {
        name: tuple(scope[size] for size in weight.shape)
        for name, weight in weights_of(part, scope).items()
        if not weight.when or scope[weight.when]
    }
    assert {name: tuple(value.shape) for name, value in build(part, **sizes).state_dict().items()} == declared


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *(Xielu(), ClampedSilu(), QuickGelu(), LayerNorm(eps_inside=False), RMSNorm(unit_offset=True), RMSNorm(eps_inside=False)),
        *(LayerScale(), FeedForward(dropout=0.1), GatedFeedForward(hidden=H), Scale(by=2.0)),
    ],
    ids=lambda part: part.kind,
)
def test_own_forwards_compile_without_a_break(part):
    """Traced as one graph, with the same values."""
    module, stream = build(part, dim=D).eval(), x()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(stream), module(stream))


def test_joining_blocks_compile_without_a_break():
    """Blocks of any number of inputs."""
    for part, sizes in ((Add(), {}), (Multiply(), {}), (WeightedSum(), {"inputs": 3}), (Concat(), {"dim": -1})):
        module, streams = build(part, **sizes), (x(), x(), x())
        torch.testing.assert_close(torch.compile(module, fullgraph=True, backend="eager")(*streams), module(*streams))


@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("init", ["", 'init: {"*": {normal: 0.5}}\n'])
def test_the_padding_starts_as_zeros_and_stays(scale: int, init: str) -> None:
    """Also where the recipe starts every parameter in its own way."""
    embed = f"{{type: embedding, vocab: 7, dim: 3, padding_idx: 2, scale: {scale}}}"
    model = composer.load(f"recipe: r\ninputs: {{ids: 'int[batch, time]'}}\ngraph: {{embed: {embed}}}\n{init}").compile(seed=0)
    weight = model.get_parameter("embed.weight")
    assert [bool(row.any()) for row in weight] == [True, True, False, True, True, True, True]
    model(torch.arange(7)[None])[0].sum().backward()
    assert weight.grad is not None
    assert [bool(row.any()) for row in weight.grad] == [True, True, False, True, True, True, True]


def test_batch_norms_of_transposed_images_compile():
    """The strides of what they give are those that the compiler expects."""
    graph = """
  t: {type: rearrange, pattern: b h c w -> b c h w}
  a: batchnorm2d
  b: {type: rearrange, pattern: b c h w -> b h (c w)}
"""
    recipe = composer.load(f"recipe: turned\ninputs: {{x: 'float[batch, 5, 3, 4]'}}\ngraph:{graph}")
    model, x = recipe.compile(seed=0).eval(), torch.randn(2, 5, 3, 4)
    with torch.no_grad():
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
        torch.testing.assert_close(compiled.b, model(x).b)


CENTERED = """
from blocks.core import Block, Call


class Centered(Block, kind="centered"):
    \"\"\"A norm of torch without weights.\"\"\"

    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time, dim]"}

    def build(self, sizes):
        return Call("nn.LayerNorm", ("dim",), {"elementwise_affine": False})
"""


def test_a_module_of_torch_is_given_no_length_that_is_not_known(tmp_path: Path) -> None:
    """A constructor takes numbers; a block that can do without names no constructor there."""
    (tmp_path / "centered.py").write_text(CENTERED, encoding="utf-8")
    text = 'recipe: example\ninputs: {x: "float[batch, time, WIDTH]"}\ngraph: {a: centered}\n'
    (found,) = composer.load(text.replace("WIDTH", "width"), blocks=tmp_path / "centered.py").check()
    assert (found.code, found.span.line) == ("unknown-size", 3) and "`nn.LayerNorm` of centered" in found.message
    model = composer.load(text.replace("WIDTH", "8"), blocks=tmp_path / "centered.py").compile()
    assert model(x=torch.ones(1, 2, 8)).a.abs().max() == 0
