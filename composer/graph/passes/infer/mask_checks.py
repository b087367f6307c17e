"""The masks of a block: what their edges are, and that they compare positions of one sequence only where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import Part
from blocks.masks.mask import Mask
from composer.diagnostics import Diagnostic
from composer.graph.ir import BlockNode, PartValue
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.infer.text_dependence import GeneratedText
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.type_patterns import Mismatch, match, pattern
from composer.graph.types import InputTypes, TensorType


def check_masks(
    node: BlockNode, part: Part, given: InputTypes, sizes: Mapping[str, Any], here: Surroundings, text: GeneratedText | None
) -> None:
    """Check the block's masks, and what they read, against the positions of its queries and keys.

    Raises:
        StopExpansion: where they do not fit, which is reported.
    """
    for prepared in part.per_call(frozenset(given)).values():
        mask = dict(node.fields).get(prepared.slot)
        if not isinstance(mask, PartValue) or not issubclass(mask.part, Mask) or len(prepared.ports) < 2:
            continue
        query, key = (part.position_inputs[port] for port in prepared.ports[:2])
        _check_sequences(mask, sizes[query], sizes[key], here)
        axes = {"batch": sizes.get("batch"), "query": sizes.get(query), "key": sizes.get(key)}
        known = {name: size for name, size in axes.items() if size is not None}
        for port, declared in mask.wires():
            if not isinstance(type_ := given.get(port), TensorType):
                continue
            pairs = declared.count("query") and text is not None and known.get("key") == text.length
            lengths = {**known, "key": text.so_far} if pairs and text is not None else dict(known)
            try:
                match(pattern(declared), type_, lengths, {})
            except Mismatch as wrong:
                message = f"the mask {port.partition('_')[0]} {wrong.message}"
                here.at_port(node, port, "type-mismatch", message)
                raise StopExpansion from None


def _check_sequences(mask: PartValue, query: Any, key: Any, here: Surroundings) -> None:
    for one in mask.parts():
        if issubclass(one.part, Mask) and one.part.one_sequence and query != key:
            message = f"`{one.part.kind}` compares positions of one sequence; here queries are {query} and keys are {key}"
            here.report(Diagnostic("two-sequences", message, one.span, hint="`valid` and `pairs` can be used with a memory"))
            raise StopExpansion
