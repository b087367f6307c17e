"""What stands below a drawing, its legend and its caption, and the shades that the legend explains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from blocks.core.look import Hue
from composer.draw.arrange.shares import COUNTED, STEPS, TRAINED, Coloring, NodeShares
from composer.draw.geometry import Text
from composer.draw.scene import SWATCH_SIZE, LegendEntry, Scene
from composer.draw.style.text_metrics import wrapped
from composer.draw.style.typography import Typography

KINDS: dict[Hue, str] = {
    "io": "input, output",
    "embed": "embedding, linear map, convolution",
    "pos": "position",
    "norm": "norm",
    "attn": "attention",
    "cross": "attention to another stream",
    "ffn": "feed-forward, activation",
    "moe": "mixture of experts",
    "rec": "recurrence",
    "merge": "sum, product, concatenation",
    "loss": "loss",
    "state": "what the step before gave",
}
"""What has which color."""
UNSHADED: frozenset[Hue] = frozenset({"io", "loss", "state"})
"""What keeps its color where colors tell sizes."""
BESIDE, BETWEEN, LINE, GAP = 6.0, 18.0, 20.0, 16.0
"""Between a color and its word; between two entries; from a line to the next; above the first one."""
CAPTION_LINE = 16.0


def shaded(scene: Scene, shares: NodeShares, coloring: Coloring) -> Scene:
    """Return a scene whose boxes are as dark as their nodes are large, in place of the colors of kinds."""
    if coloring == "kind":
        return scene
    boxes = (box if box.hue in UNSHADED else replace(box, shade=shares.step(box.about, coloring)) for box in scene.boxes)
    return replace(scene, boxes=tuple(boxes))


def shows_whole_blocks(scene: Scene, shares: NodeShares) -> bool:
    """Return whether every box stands for a node, so that colors can tell what is counted for whole blocks only."""
    return all(shares.is_node(box.about) for box in scene.boxes if box.hue not in UNSHADED | {"pos"})


def with_foot(scene: Scene, typography: Typography, coloring: Coloring, *, legend: bool, caption: str, margin: float) -> Scene:
    """Return a scene with a legend and a caption below it, as wide as it is."""
    if legend:
        scene = _with_legend(scene, typography, coloring, margin)
    room = scene.width - 2 * margin
    lines = wrapped(caption.split(), " ", lambda said: typography.width(said, "facts") <= room) if caption else []
    if not lines:
        return scene
    size, top = typography.scale, scene.height - margin + GAP
    words = [typography.fitted(line, "facts", room) for line in lines]
    texts = (
        Text(margin, top + CAPTION_LINE * size * (number + 1), line, "facts", "start", size) for number, line in enumerate(words)
    )
    height = scene.height + GAP + CAPTION_LINE * size * len(lines)
    return replace(scene, texts=(*scene.texts, *texts), height=height)


def _with_legend(scene: Scene, typography: Typography, coloring: Coloring, margin: float) -> Scene:
    size, x, y = typography.scale, margin, scene.height - margin + GAP
    found: list[LegendEntry] = []
    entries = [*_entries(scene, coloring)]
    if coloring in COUNTED:  # the first word says of what
        entries[0] = (*entries[0][:2], f"share of the {COUNTED[coloring]}: {entries[0][2]}")
    for hue, shade, said in entries:
        word = typography.fitted(said, "facts", scene.width - 2 * margin - SWATCH_SIZE - BESIDE)
        wide = SWATCH_SIZE + BESIDE + typography.width(word, "facts")
        if found and x + wide > scene.width - margin:
            x, y = margin, y + LINE * size
        text = Text(x + SWATCH_SIZE + BESIDE, y + SWATCH_SIZE / 2 + 4 * size, word, "facts", "start", size)
        found.append(LegendEntry(x, y, text, hue, shade))
        x += wide + BETWEEN
    height = y + SWATCH_SIZE + margin
    return replace(scene, legend=tuple(found), height=height)


def _entries(scene: Scene, coloring: Coloring) -> Iterable[tuple[Hue, int | None, str]]:
    """Yield each color that is there, and what it tells."""
    shades = {box.shade for box in scene.boxes}
    if coloring == "kind":
        hues = {box.hue for one in scene.drawings for box in one.boxes}
        hues |= {"merge"} if any(one.merges for one in scene.drawings) else set()
        yield from ((hue, None, said) for hue, said in KINDS.items() if hue in hues)
    elif coloring == "trainable":
        yield from (("attn", step, said) for step, said in TRAINED.items() if step in shades)
    else:
        yield from (("attn", step, said) for step, (_, said) in enumerate(STEPS))
