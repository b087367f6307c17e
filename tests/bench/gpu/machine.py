"""The machine and the rates that it reaches."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import torch
import transformers

from composer.estimate import DEVICES, measure_device, read_device, write_device
from composer.estimate.devices import DeviceSpec
from tests.bench.gpu.setting import Setting

SHEET = "h100"
"""The device whose data sheet gives the peak of the MFU, unless another is named."""


def run(setting: Setting) -> None:
    """Write what the machine is, and keep its rates for the other sections."""
    with setting.case("versions") as row:
        row |= {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__}
        row |= {"cuda": torch.version.cuda, "cpus": os.cpu_count(), "threads": torch.get_num_threads()}
        if setting.on_card:
            row["card"] = torch.cuda.get_device_name(setting.device)
            row["capability"] = ".".join(map(str, torch.cuda.get_device_capability(setting.device)))
            query = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
            row["driver, clock, power"] = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    with setting.case("rates") as row:
        spec = measure_device(str(setting.device))
        write_device(spec, setting.folder / "device.json")
        for precision, rates in spec.matmul.items():
            row[f"products in {precision}, TFLOP/s"] = max(rate for _, rate in rates) / 1e12
        for precision, rates in spec.attention.items():
            row[f"causal attention in {precision}, TFLOP/s"] = max(rate for _, rate in rates) / 1e12
        row["memory, GB/s"] = spec.bandwidth[-1][1] / 1e9
        row["launch, µs"] = spec.launch * 1e6
    with setting.case("copy of 1 GiB") as row:
        size = 2**16 if setting.toy else 2**30
        source = torch.randint(255, (size,), dtype=torch.uint8, device=setting.device)
        target = torch.empty_like(source)
        found, apart = setting.times({"copy": lambda: target.copy_(source)})
        row |= {"memory, GB/s": 2 * size / found["copy"] / 1e9, "A/A": apart}


def measured(folder: Path) -> DeviceSpec:
    """Return the rates that the section `machine` measured, or else those of the data sheet."""
    path = folder / "device.json"
    return read_device(path) if path.exists() else DEVICES[SHEET]
