"""ResNet and ConvNeXt, written as recipes: what transformers' implementations give, and their weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import ConvNextConfig, ConvNextModel, PreTrainedModel, ResNetConfig, ResNetModel

import composer
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import perturbed, published

RESNET = """recipe: resnet
task: encoder
blocks:
  conv_norm:
    params: {out: {type: int, required: true}, kernel: 3, stride: 1}
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      conv: {type: conv2d, out: out, kernel_size: kernel, stride: stride, padding: kernel // 2, bias: false}
      norm: batchnorm2d
  basic:
    params: {out: {type: int, required: true}, stride: 1, first: {type: bool, default: false}}
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      one: {type: conv_norm, out: out, stride: stride, in: x}
      act: relu
      two: {type: conv_norm, out: out}
      shortcut: {type: conv_norm, out: out, kernel: 1, stride: stride, in: x, when: first}
      sum: {type: add, in: [two, shortcut if first else x]}
      y: relu
params: {stem: 8, wider: 16}
inputs: {image: "float[batch, 3, height, 37]"}
graph:
  stem: {type: conv_norm, out: stem, kernel: 7, stride: 2}
  act: relu
  pool: {type: max_pool2d, kernel_size: 3, stride: 2, padding: 1}
  same: {repeat: 1, graph: {layer: {type: basic, out: stem}}}
  half: {repeat: 2, graph: {layer: {type: basic, out: wider, stride: 2 if layer == 0 else 1, first: layer == 0}}}
outputs: {hidden: half}
checkpoints:
  resnet:
    rules:
      stem.(conv|norm).*: embedder.embedder.(convolution|normalization).*
      same.<layer>.layer.(one|two).(conv|norm).*: encoder.stages.0.layers.<layer>.layer.(0|1).(convolution|normalization).*
      half.<layer>.layer.(one|two).(conv|norm).*: encoder.stages.1.layers.<layer>.layer.(0|1).(convolution|normalization).*
      half.<layer>.layer.shortcut.(conv|norm).*: encoder.stages.1.layers.<layer>.shortcut.(convolution|normalization).*
    ignore: ["*.num_batches_tracked"]
"""
CONVNEXT = """recipe: convnext
task: encoder
blocks:
  over_channels:
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      last: {type: rearrange, pattern: b c h w -> b h w c}
      norm: {type: layernorm, eps: 1e-6}
      back: {type: rearrange, pattern: b h w c -> b c h w}
  mixer:
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      deep: {type: conv2d, out: channels, kernel_size: 7, padding: 3, groups: channels, in: x}
      last: {type: rearrange, pattern: b c h w -> b h w c}
      norm: {type: layernorm, eps: 1e-6}
      up: {type: linear, out: 4 * channels}
      act: gelu
      down: {type: linear, out: channels}
      scale: layer_scale
      back: {type: rearrange, pattern: b h w c -> b c h w}
      y: {type: add, in: [x, back]}
params: {stem: 8, wider: 16}
inputs: {image: "float[batch, 3, height, 37]"}
graph:
  patches: {type: conv2d, out: stem, kernel_size: 4, stride: 4}
  norm: over_channels
  same: {repeat: 1, graph: {layer: mixer}}
  shrunk: over_channels
  halved: {type: conv2d, out: wider, kernel_size: 2, stride: 2}
  half: {repeat: 2, graph: {layer: mixer}}
outputs: {hidden: half}
checkpoints:
  convnext:
    rules:
      patches.*: embeddings.patch_embeddings.*
      norm.norm.*: embeddings.layernorm.*
      shrunk.norm.*: encoder.stages.1.downsampling_layer.0.*
      halved.*: encoder.stages.1.downsampling_layer.1.*
      same.<layer>.layer.scale.weight: encoder.stages.0.layers.<layer>.layer_scale_parameter
      same.<layer>.layer.(deep|norm|up|down).*: encoder.stages.0.layers.<layer>.(dwconv|layernorm|pwconv1|pwconv2).*
      half.<layer>.layer.scale.weight: encoder.stages.1.layers.<layer>.layer_scale_parameter
      half.<layer>.layer.(deep|norm|up|down).*: encoder.stages.1.layers.<layer>.(dwconv|layernorm|pwconv1|pwconv2).*
    ignore: [layernorm.*]
"""


def reference(name: str) -> PreTrainedModel:
    """Return transformers' model, with weights that are nowhere zero."""
    sizes: dict[str, Any] = {"hidden_sizes": [8, 16], "depths": [1, 2], "num_channels": 3}
    if name == "convnext":
        model: PreTrainedModel = ConvNextModel(ConvNextConfig(**sizes, num_stages=2))
    else:
        model = ResNetModel(ResNetConfig(**sizes, embedding_size=8, layer_type="basic"))
    model = perturbed(model)
    for buffer_name, buffer in model.named_buffers():
        if buffer_name.endswith("running_var"):
            buffer.uniform_(0.5, 2.0)
        elif buffer_name.endswith("running_mean"):
            buffer.normal_()
    return model


@pytest.mark.parametrize(("name", "text"), [("resnet", RESNET), ("convnext", CONVNEXT)])
@torch.no_grad()
def test_a_convolutional_network_is_that_of_transformers(name: str, text: str) -> None:
    """Features, parameters, and weights that come back bit for bit."""
    torch.manual_seed(0)
    theirs, recipe = reference(name).eval(), composer.load(text)
    assert recipe.check() == []
    model = recipe.compile(seed=0).eval()
    load_published(model, published(theirs))
    for height in (33, 64):
        image = torch.randn(2, 3, height, 37)
        expected = theirs(image, output_hidden_states=True).hidden_states[-1]
        torch.testing.assert_close(model(image).hidden, expected, rtol=0, atol=1e-5 * expected.abs().max().item())
    ours, state = model.state_dict(), published(theirs)
    assert recipe.program.untyped.recipe.checkpoints is not None
    saved = mapping(recipe.program.untyped.recipe.checkpoints, name, shapes_of(ours), recipe.program.untyped.params).save(ours)
    assert saved.keys() == {key for key in state if not key.endswith("num_batches_tracked") and not key.startswith("layernorm")}
    assert all(torch.equal(state[key], tensor) for key, tensor in saved.items())


def test_gradients_of_a_resnet_are_those_of_transformers() -> None:
    """In training, where means and variances are those of the batch."""
    torch.manual_seed(0)
    theirs, model = reference("resnet").double().train(), composer.load(RESNET).compile(seed=0, dtype=torch.float64).train()
    load_published(model, published(theirs))
    image = torch.randn(4, 3, 40, 37, dtype=torch.float64)
    weighted = torch.randn(4, 16, 5, 5, dtype=torch.float64)
    one, other = model(image).hidden, theirs(image).last_hidden_state
    torch.testing.assert_close(one, other, rtol=0, atol=1e-9)
    (one * weighted).sum().backward()
    (other * weighted).sum().backward()
    gradient = dict(theirs.named_parameters())["embedder.embedder.convolution.weight"].grad
    torch.testing.assert_close(model.stem.conv.weight.grad, gradient, rtol=1e-8, atol=1e-9)
