"""From diagram to diagram: what changes in which order.

Of each pass the docstring shows a flow before and after. `b(a x)` is a block that reads another and an input of the model, `~` a
value from the side, `@` one that goes by its name, `b.1` a pass of a repeat, `b.inner` what is made in a frame,
`[b(a) | c(a)] d(a)` branches from a fork to a join, `{b(a)} d(a)` an irregular subgraph, `[b(a) | c(a)]` heads, of which nothing
goes on, `a(x) [b(a) | c(a.second)]` what starts at an output of one block each, and ` / ` stands between flows.
"""

from __future__ import annotations

from collections.abc import Callable

from composer.draw.passes.alternatives import by_name_from_outside
from composer.draw.passes.branches import group_branches
from composer.draw.passes.heads import group_heads, group_led_out, group_outputs, split_aside
from composer.draw.passes.inner_outputs import join_passes, lead_out_of_frames
from composer.draw.passes.irregular import group_irregular_subgraphs
from composer.draw.passes.ladder import split_ladder
from composer.draw.passes.layer_exits import lead_out_of_layers
from composer.draw.passes.merge_kinds import merge_passes
from composer.draw.passes.order import sort_topologically, split_u
from composer.draw.passes.overview import fold_norms
from composer.draw.passes.pyramid import split_pyramid
from composer.draw.passes.side_inputs import split_side_inputs
from composer.draw.passes.skips import lift_skip_blocks
from composer.draw.passes.split_columns import by_name_where_needed, split_into_columns

PASSES: tuple[Callable[..., object], ...] = (
    merge_passes,
    fold_norms,
    join_passes,
    by_name_from_outside,
    lead_out_of_frames,
    split_into_columns,
    lead_out_of_layers,
    by_name_where_needed,
    split_u,
    lift_skip_blocks,
    split_pyramid,
    split_ladder,
    split_aside,
    split_side_inputs,
    sort_topologically,
    group_irregular_subgraphs,
    group_branches,
    group_led_out,
    group_heads,
    group_outputs,
)
"""In the order in which they run: the first two while a diagram is built, the next ten for a page, and the rest for each of its
columns, frames and branches. Before the last two, a column is sorted once more; before all for a page, `name_starts` and
`stand_by_readers` move what recurrences start with into frames, which a line of text does not show. No loop runs them, since they
differ in what they are given: some make one flow of several, others several of one.
"""
