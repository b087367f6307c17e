"""Which node an exception came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from composer.lower.model import Model


def locate(error: BaseException, model: Model) -> str:
    """Return `in layers.3.attn.body (recipes/gpt2.yaml:31)`: the innermost node whose code was running; nothing if none was."""
    found = ""
    traceback = error.__traceback__
    paths = {id(module): name for name, module in model.named_modules()}
    filename = model.__dict__["filename"]
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename == filename and traceback.tb_lineno in model.module.lines:
            node, place = model.module.lines[traceback.tb_lineno]
            path = paths.get(id(frame.f_locals.get("self")), "")
            if node:
                found = f"in {path}{'.' if path else ''}{node} ({place})"
        traceback = traceback.tb_next
    return found
