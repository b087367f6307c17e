"""Passes do what their docstrings show."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from composer.draw.diagram import Flow, output_of
from composer.draw.edges import DiagramSource, FrameInput, NodeOutput
from composer.draw.passes import PASSES
from composer.draw.passes.heads import group_led_out, group_outputs, split_aside
from composer.draw.passes.irregular import group_irregular_subgraphs
from composer.draw.passes.ladder import Ladder, Rung
from composer.draw.passes.layer_exits import lead_out_of_layers
from composer.draw.passes.merge_kinds import merge_passes
from composer.draw.passes.side_inputs import SideInputs
from composer.draw.passes.skips import SkipBlock
from composer.draw.passes.split_columns import by_name_where_needed
from composer.draw.series import one_each
from tests.draw.notation import flow, shown


def said(result: object) -> str:
    """Return what a pass gives, in a line."""
    match result:
        case Ladder():
            return " / ".join([shown(result.trunk), *map(said, result.rungs), *map(shown, result.meetings)])
        case Rung():
            return f"{' '.join(result.line)}({result.tap})"
        case Flow():
            return shown(result)
        case list() | tuple():
            return " / ".join(map(said, result))
        case SkipBlock():
            return result.leaf.about.path
        case SideInputs():
            beside = (f"{leaf.about.path} beside {path}" for path, leaves in result.beside.items() for leaf, _, _ in leaves)
            return "; ".join([shown(result.flow), *beside])
    raise AssertionError(result)


def run(apply: Callable[..., object], flows: list[Flow]) -> object:
    """Return what a pass makes of flows."""
    if apply is merge_passes:
        return apply(flows, one_each(len(flows)))
    if apply in (by_name_where_needed, lead_out_of_layers):
        return apply(flows)
    if apply is group_irregular_subgraphs:
        return apply(*flows, lambda subgraph: True)
    if apply is group_led_out:
        return apply(*flows, sent=[NodeOutput("b")])
    if apply is group_outputs:
        return apply(*flows, kept=(), sent=[NodeOutput("b"), NodeOutput("c")])
    if apply is split_aside:
        return apply(*(replace(one, entry=FrameInput("frame"), outlet=DiagramSource(output_of(one.items[-1]))) for one in flows))
    return apply(*flows)


@pytest.mark.parametrize("apply", PASSES, ids=lambda one: one.__name__)
def test_a_pass_does_what_its_docstring_shows(apply: Callable[..., object]) -> None:
    """From the line before to the line after."""
    lines = re.search(r"^Before: (.*)\nAfter:  (.*)$", inspect.getdoc(apply) or "", re.MULTILINE)
    assert lines is not None
    before, after = lines.groups()
    assert said(run(apply, list(map(flow, before.split(" / "))))) == after
