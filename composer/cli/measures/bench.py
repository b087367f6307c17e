"""`arco bench`: measure the rates of this machine, for estimates of time."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, StoreOnce
from composer.cli.output import say
from composer.cli.running import add_device, chosen_device, refusals
from composer.printable import json_text

if TYPE_CHECKING:
    from composer.estimate import DeviceSpec
    from composer.estimate.devices import Rate


def declare(parser: Parser, name: str) -> None:
    """Declare the device and the file."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", action=StoreOnce, help="Also write the rates to this file, for arco cost --device FILE"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="Output format")
    add_device(parser)
    parser.examples = [
        ("Measure this machine, which takes some seconds", "arco bench --device cpu"),
        ("Keep the rates, and estimate by them", "arco bench --device cpu -o laptop.json"),
    ]
    parser.notes = "Close other programs first: what they take, the rates lack."
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print and keep the rates."""
    from composer.estimate import measure_device, write_device
    from composer.estimate.devices import to_json

    with refusals():
        spec = measure_device(chosen_device(arguments.device))
        if arguments.output is not None:
            write_device(spec, arguments.output)
    say(json_text(json.loads(json.dumps(to_json(spec))), indent=2) if arguments.format == "json" else lines(spec))
    return 0


def lines(spec: DeviceSpec) -> str:
    """Return the rates as text: those of the largest operators, and the range over their sizes."""
    memory = f", {spec.memory / 10**9:,.3g} GB" if spec.memory else ""
    found = [f"{spec.name}{memory}", ""]
    for precision, rate in spec.matmul.items():
        found.append(f"matrix products in {precision}   {_range(rate, 1e9)} GFLOPS")
    for precision, rate in spec.attention.items():
        found.append(f"attention in {precision}         {_range(rate, 1e9)} GFLOPS")
    found.append(f"memory                    {_range(spec.bandwidth, 1e9)} GB/s")
    if spec.allocation:
        found.append(f"new memory                {_range(spec.allocation, 1e9)} GB/s")
    if spec.functions:
        found.append(f"functions such as exp     {_range(spec.functions, 1e9)} billion/s")
    found.append(f"to start an operator      {spec.launch * 1e6:.2g} µs")
    return "\n".join(found)


def _range(rate: Rate, unit: float) -> str:
    """Return the rate of large operators, and the best, if it is far from it."""
    last, best = rate[-1][1] / unit, max(each for _, each in rate) / unit
    return _three(last) + (f", up to {_three(best)} in a cache" if best > 1.5 * last else "")


def _three(value: float) -> str:
    """Return at least three digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
