"""What a model takes before it is run: the memory and the time of training steps and of single tokens, on any device.

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names

if TYPE_CHECKING:
    from composer.estimate.batch import largest_batch as largest_batch
    from composer.estimate.devices import DEVICES as DEVICES
    from composer.estimate.devices import DeviceSpec as DeviceSpec
    from composer.estimate.devices import EstimateError as EstimateError
    from composer.estimate.devices import read_device as read_device
    from composer.estimate.devices import write_device as write_device
    from composer.estimate.estimates import Estimate as Estimate
    from composer.estimate.estimates import TrainingMemory as TrainingMemory
    from composer.estimate.estimating import estimate as estimate
    from composer.estimate.measuring import measure_device as measure_device
    from composer.estimate.work import Duration as Duration

_HOME = {
    "DEVICES": "devices",
    "DeviceSpec": "devices",
    "Duration": "work",
    "Estimate": "estimates",
    "EstimateError": "devices",
    "TrainingMemory": "estimates",
    "estimate": "estimating",
    "largest_batch": "batch",
    "measure_device": "measuring",
    "read_device": "devices",
    "write_device": "devices",
}
__all__ = [
    "DEVICES",
    "DeviceSpec",
    "Duration",
    "Estimate",
    "EstimateError",
    "TrainingMemory",
    "estimate",
    "largest_batch",
    "measure_device",
    "read_device",
    "write_device",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
