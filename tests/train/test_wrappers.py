"""The loss and the groups of parameters of a compiled recipe, in the wrappers of torch and of PEFT."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing, checkpoint_wrapper

import composer
from composer.lower import Model
from composer.train import TrainingError, task_of

SIZES = {"n_layers": 2, "d_model": 8, "n_heads": 2, "vocab": 13, "context": 6, "dropout": 0.0}
BATCH = {"tokens": torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])}


@pytest.fixture
def model() -> Model:
    """A small GPT-2, whose head is tied."""
    return composer.load("gpt2", SIZES).compile(seed=1)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """A group of one process."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def checkpointed(model: nn.Module) -> nn.Module:
    """Every layer computed again in the backward pass."""
    layers = {*model.layers}
    apply_activation_checkpointing(model, check_fn=lambda module: module in layers)
    return model


def sharded(model: nn.Module) -> nn.Module:
    """FSDP2, which changes the model in place."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(model, mesh=init_device_mesh("cpu", (1,)))


def parallelized(model: nn.Module) -> nn.Module:
    """Tensor parallelism, which replaces parameter after parameter of the modules that its plan names."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    columns, rows = (f"layers.*.{path}" for path in ("attn.body.[qkv]", "attn.body.out"))
    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate()),
        "head": ColwiseParallel(output_layouts=Replicate()),
        **{columns: ColwiseParallel(), rows: RowwiseParallel()},
        **{"layers.*.ffn.body.up": ColwiseParallel(), "layers.*.ffn.body.down": RowwiseParallel()},
    }
    return parallelize_module(model, init_device_mesh("cpu", (1,)), plan)


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "torch.compile": lambda model: torch.compile(model, backend="eager"),
    "DDP": nn.parallel.DistributedDataParallel,
    "FSDP2": sharded,
    "checkpoint of layers": checkpointed,
    "checkpoint of all": checkpoint_wrapper,
    "DDP of torch.compile": lambda model: nn.parallel.DistributedDataParallel(torch.compile(model, backend="eager")),
    "tensor parallelism": parallelized,
    "a module of one's own": lambda model: nn.ModuleDict({"net": model}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPERS)
def test_loss_and_groups_are_those_of_the_model_inside(name, model, alone):
    """The same loss, the same gradients, each parameter in the same group."""
    plain = copy.deepcopy(model)
    composer.loss(plain, BATCH).total.backward()
    wrapped = WRAPPERS[name](model)
    assert task_of(wrapped) == "causal_lm"
    groups, expected = (composer.param_groups(each, weight_decay=0.1) for each in (wrapped, plain))
    called = model if isinstance(wrapped, nn.ModuleDict) else wrapped  # a dictionary cannot be called
    total = composer.loss(called, BATCH).total
    total.backward()
    assert torch.equal(total, composer.loss(plain, BATCH).total)
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    for group, other in zip(groups, expected, strict=True):
        assert len(group["params"]) == len(other["params"])
        for mine, theirs in zip(group["params"], other["params"], strict=True):
            grad = mine.grad.full_tensor() if hasattr(mine.grad, "full_tensor") else mine.grad
            torch.testing.assert_close(grad, theirs.grad)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alone", "inside"])
def test_ties_survive_tensor_parallelism(name, model, alone):
    """The embedding and the head stay one parameter, which learns from both, also where an optimizer asks a module around."""
    plain = copy.deepcopy(model)
    parallelized(model)
    for each in (model, plain):
        asked = nn.ModuleDict({"net": each}) if name == "inside" else each
        optimizer = torch.optim.SGD(asked.parameters(), lr=0.5)
        composer.loss(each, BATCH).total.backward()
        optimizer.step()
    assert model.head.weight is model.embed.weight and hasattr(model.head.weight, "placements")
    found, expected = model.state_dict(), plain.state_dict()
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(getattr(found[key], "full_tensor", lambda key=key: found[key])(), value)


def test_peft_trains_its_adapters_with_decay(model):
    """And nothing else, but what it is told to save, which keeps its role."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q", "v"], modules_to_save=["norm"])
    wrapped = peft.get_peft_model(model, config)
    assert task_of(wrapped) == "causal_lm"
    composer.loss(wrapped, BATCH).total.backward()
    decayed, kept = composer.param_groups(wrapped, weight_decay=0.1)
    names = {parameter: name for name, parameter in wrapped.named_parameters()}
    assert {names[each].split(".lora_")[-1][0] for each in decayed["params"]} == {"A", "B"} and len(decayed["params"]) == 8
    assert kept["params"] and all("norm.modules_to_save" in names[each] for each in kept["params"])


def test_what_holds_no_recipe_is_named():
    """With what it is in; and a parameter that is none of the recipe."""
    with pytest.raises(TrainingError, match="Linear in DataParallel is not a compiled recipe"):
        task_of(nn.DataParallel(nn.Linear(2, 2)))
    model = composer.load("gpt2", SIZES).compile(seed=1)
    model.extra = nn.Linear(2, 2)
    with pytest.raises(TrainingError, match=r"extra\.weight is not known"):
        composer.param_groups(model, weight_decay=0.1)
