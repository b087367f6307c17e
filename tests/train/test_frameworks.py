"""The trainers of other packages, against a loop of a few lines, on a compiled recipe as it is."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils.data import DataLoader

import composer

SIZES = {"n_layers": 2, "d_model": 8, "n_heads": 2, "vocab": 13, "context": 6, "dropout": 0.0}
RATE = 0.05
STEPS = 4


class Rows(torch.utils.data.Dataset):
    """Eight rows of tokens, each in a dictionary."""

    tokens = torch.randint(13, (2 * STEPS, 5), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"tokens": self.tokens[index]}


def fresh() -> torch.nn.Module:
    """The same small GPT-2 each time, whose head is tied."""
    return composer.load("gpt2", SIZES).compile(seed=1)


@pytest.fixture(scope="module")
def by_hand() -> dict[str, torch.Tensor]:
    """The weights after a plain loop over batches of two rows."""
    model = fresh()
    optimizer = torch.optim.SGD(composer.param_groups(model, weight_decay=0.1), lr=RATE)
    for batch in DataLoader(Rows(), batch_size=2):
        composer.loss(model, batch).total.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.state_dict()


def same(model: torch.nn.Module, expected: dict[str, torch.Tensor]) -> None:
    """Assert that the weights are those of the plain loop, and not the first ones."""
    found = model.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, msg=name)
    assert not torch.equal(found["embed.weight"], fresh().state_dict()["embed.weight"])


@pytest.mark.slow
def test_the_trainer_of_transformers_trains_and_saves(tmp_path, by_hand):
    """It needs to know the loss, and nothing else; what it saves is loaded again, with the tie."""
    transformers = pytest.importorskip("transformers")

    class Trainer(transformers.Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            return composer.loss(model, inputs).total

    model = fresh()
    options = transformers.TrainingArguments(
        str(tmp_path), per_device_train_batch_size=2, num_train_epochs=1, lr_scheduler_type="constant", max_grad_norm=0,
        learning_rate=RATE, report_to=[], use_cpu=True, save_strategy="epoch", disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    optimizer = torch.optim.SGD(composer.param_groups(model, weight_decay=0.1), lr=RATE)
    trainer = Trainer(model, options, train_dataset=Rows(), optimizers=(optimizer, None))
    trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(Rows())  # as the loop, in order
    trainer.train()
    same(model, by_hand)
    again = fresh()
    from safetensors.torch import load_file

    again.load_state_dict(load_file(tmp_path / f"checkpoint-{STEPS}" / "model.safetensors"))
    same(again, by_hand)
    trainer.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{STEPS}"))
    same(model, by_hand)  # all steps are done


@pytest.mark.slow
def test_accelerate_trains(by_hand):
    """Model, optimizer and batches as it prepares them, with accumulation of one."""
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    model = fresh()
    optimizer = torch.optim.SGD(composer.param_groups(model, weight_decay=0.1), lr=RATE)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Rows(), batch_size=2))
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(composer.loss(model, batch).total)
            optimizer.step()
            optimizer.zero_grad()
    same(accelerator.unwrap_model(model), by_hand)


@pytest.mark.slow
def test_lightning_trains(tmp_path, by_hand):
    """A module of the usual three lines."""
    lightning = pytest.importorskip("lightning")

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = fresh()

        def training_step(self, batch):
            return composer.loss(self.model, batch).total

        def configure_optimizers(self):
            return torch.optim.SGD(composer.param_groups(self, weight_decay=0.1), lr=RATE)

    module = Lit()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=tmp_path,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module, DataLoader(Rows(), batch_size=2))
    same(module.model, by_hand)
    (saved,) = tmp_path.rglob("*.ckpt")
    again = Lit.load_from_checkpoint(saved)
    same(again.model, by_hand)
