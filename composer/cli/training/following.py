"""Shared by the commands that train: what follows a run, from the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Problem, number
from composer.cli.output import say

if TYPE_CHECKING:
    from torch.nn import Module

    from composer.train import Callback, TrainSettings

VIEWERS = ("tensorboard", "wandb")
WATCHED = ("gradients", "activations", "experts", "memory")


def add_following(group: argparse._ActionsContainer) -> None:
    """Declare `--watch`, `--peak-flops` and `--log`."""
    group.add_argument(
        "--watch",
        action="append",
        choices=WATCHED,
        help="In each logged step, also measure the norm of each layer's gradient, the size of its activations, the load of each "
        "expert, or the memory in use (repeatable)",
    )
    group.add_argument(
        "--peak-flops",
        metavar="X",
        type=number,
        help="FLOPs that the device computes in a second at most, such as 989e12: also tell the share that is used, the MFU",
    )
    group.add_argument(
        "--log",
        action="append",
        choices=VIEWERS,
        help="Also write the metrics for TensorBoard or, offline, for Weights & Biases, into the run folder (repeatable)",
    )


def check_alone() -> None:
    """Raise `Problem` in one of several processes of a launcher, which would all train the same run."""
    count = os.environ.get("WORLD_SIZE", "1")
    if count.isdigit() and int(count) > 1:
        raise Problem(
            f"arco train: a launcher started {count} processes, and a run trains in one; several come in a later version",
            "start it without the launcher, or train the compiled model in a loop of your own",
        )


def callbacks_of(arguments: argparse.Namespace) -> list[Callback]:
    """Return the callbacks that the options ask for; what measures comes before what writes.

    Raises:
        TrainingError: The peak is not a positive number.
    """
    from composer.train import Utilization
    from composer.train.following.trackers import TRACKERS
    from composer.train.following.watches import WATCHES

    found: list[Callback] = [WATCHES[name]() for name in dict.fromkeys(arguments.watch or ())]
    if arguments.peak_flops is not None:
        found.append(Utilization(peak_flops=arguments.peak_flops))
    return found + [TRACKERS[name]() for name in dict.fromkeys(arguments.log or ())]


def announcement(name: str, data: str, folder: Path) -> Callback:
    """Return what says that a run begins, once all of it is checked."""
    from composer.train import Callback

    class Announcement(Callback):
        def check(self, model: Module, settings: TrainSettings) -> None:
            count = sum(parameter.numel() for parameter in model.parameters())
            trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
            of_which = f", of which {trained:,} are trained" if trained < count else ""
            say(f"training {name}, {count:,} parameters{of_which}, on {data}; run folder {folder}")

    return Announcement()
