"""What drawing a token costs beside the operations that it cannot do without."""

from __future__ import annotations

import torch

from composer.decode import draw
from tests.bench.bench_draw_token import WAYS
from tests.bench.gpu.setting import Setting


def run(setting: Setting) -> None:
    """Measure one row and eight, in bfloat16 as a model gives them."""
    generator = torch.Generator(setting.device)
    for words in (997,) if setting.toy else (50_257, 128_256):
        for rows in (1, 8):
            logits = torch.randn(rows, words, device=setting.device, dtype=setting.dtype)
            for name, (sampling, plain) in WAYS.items():
                with setting.case(name, words=words, rows=rows) as row:
                    ours = lambda: draw(logits, sampling, generator)  # noqa: B023, E731
                    theirs = lambda: plain(logits)  # noqa: B023, E731
                    found, apart = setting.times({"theirs": theirs, "ours": ours})
                    row |= {"µs": 1e6 * found["ours"], "least µs": 1e6 * found["theirs"]}
                    row |= {"times as long": found["ours"] / found["theirs"], "A/A": apart}
