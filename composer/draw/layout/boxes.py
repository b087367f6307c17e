"""A block as a box: how wide and high it is for what it says, and where in it each line stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blocks.core import TableIcon, spoken
from blocks.core.look import ProductIcon
from composer.draw.brief.block import is_parameter
from composer.draw.diagram import Flow, Leaf, Row
from composer.draw.geometry import ICON, SWATCH, PlacedIcon, Swatch, Text
from composer.draw.scene import Box
from composer.draw.series import OF, is_list
from composer.draw.style.line_breaks import LONGEST_FACT, in_lines, row_lines
from composer.draw.style.typography import Role, Typography

WIDTH, MAX_BOX_WIDTH = 268.0, 430.0
"""Of the boxes of a column: usually, so that `Grouped-query attention` has room between an icon and its parameters; and at most,
where longer texts are cut.
"""
TWO_COLUMNS_WIDTH = 240.0
"""Width of boxes where a model has several columns, so that two and the wires between them fit into a page."""
MIN_COLUMN_WIDTH = 132.0
"""The least width of boxes that stand side by side, so that branches with short titles are equally wide."""
MEMORY_WIDTH, MEMORY_HEIGHT = 168.0, 58.0
"""The least width of the box of a state that is a table, and its height."""
MIN_SIDE_WIDTH = 104.0
"""The least width of a box beside another, so that several above each other are in line at both sides."""
PICTURE_GAP = 9.0
"""Between a picture and the lower border."""
PAD = 9.0
"""Between a border and what is written inside of it."""
INSET = 4.0
"""The same more, beside sides that are slanted."""
ICON_ROOM = ICON + 2 * PAD
ROW_GAP = 9.0
"""Between the icon of a row and what stands beside it."""
NAME_GAP = 6.0
"""Between the name of a node and the title of its box."""
LINE = 14.0
"""From one line to the next, where there are several: a third more than the 10.5 pixels of a detail."""
ROW, PLAIN_ROW = 32.0, 18.0
"""Height of each of several kinds of a block: with an icon, of 28 pixels, or a detail below it; and with one line of text."""
TWO_LINES, ICON_LINE, ONE_LINE, LOW_LINE = 42, 34, 28, 20
"""Height of a box with a title and a detail; with a title beside an icon, which needs 3 pixels above and below; with a title;
with title and detail in one line of small letters.
"""
DETAIL_LINE = 13.0
"""From one line below a title to the next."""
TITLE_GAP = 5.0
"""Between the title and the detail of a low box, about two spaces."""
HEAD, PLAIN_HEAD = 44, 30
"""The same above rows: 2 pixels more separate the two."""


def needed(leaf: Leaf, typography: Typography, *, narrow: bool = False, named: bool = True) -> float:
    """Return the width that a block's texts want, with or without its name; a narrow one has its parameters behind the detail."""
    return min(_needed(leaf, typography, narrow=narrow, named=named) + 2 * inset(leaf), MAX_BOX_WIDTH)


def inset(leaf: Leaf) -> float:
    """Return how much narrower than a box that is what stands in it since its sides are slanted."""
    return INSET if leaf.places and not leaf.lines else 0.0


def _needed(leaf: Leaf, typography: Typography, *, narrow: bool, named: bool) -> float:
    look = leaf.look
    icon = icon_room(leaf)
    large = picture_of(leaf, typography)
    least = large.area.right + 2 * PAD if large is not None else 0.0
    if leaf.lines:
        return max(least, max(typography.width(line, role) for role, line in leaf.lines) + icon + PAD)
    if is_low(leaf):
        name = name_room(leaf, 0.0, typography) if leaf.name and (named or leaf.in_formula) else 0.0
        line = needed_in_line(leaf, typography)
        return min((line + name if line + name <= WIDTH or leaf.in_formula else line) + 1, MAX_BOX_WIDTH)
    params = 0.0 if tells_params_below(leaf, narrow) else params_room(leaf, typography)
    title, whole = (typography.width(one, "title") for one in (look.title, whole_title(leaf)))
    beside = leaf.name and (named or leaf.in_formula)
    if leaf.by_name and whole + 2 * max(icon, params) <= WIDTH:
        title, beside = whole, ""
    with_name = title + 2 * name_room(leaf, icon, typography) if beside else 0.0
    most = title + name_room(leaf, icon, typography) + max(params, PAD) if leaf.in_formula else 0.0  # with the title beside it
    title = max(title + 2 * max(icon, params), min(with_name, max(WIDTH, most)))
    lines = details_of(leaf, narrow=narrow)
    detail = max((typography.width(line, "detail") for line in lines), default=0.0) + icon + PAD
    start = PAD + (ICON + ROW_GAP if any(row.look.icon is not None for row in leaf.rows) else 0.0)
    said: list[tuple[Row, Role, str]] = [(row, "row", line) for row in leaf.rows for line in row_lines(row.share)]
    said += [(row, "detail", row.look.detail) for row in leaf.rows]
    rows = [start + swatches(row) + typography.width(line, role) + PAD for row, role, line in said]
    return min(max(title, detail, least, *rows, MEMORY_WIDTH * is_memory(leaf)) + 1, MAX_BOX_WIDTH)


def is_memory(leaf: Leaf) -> bool:
    """Return whether a block stands for a state that is a table: a model with such a memory is about it."""
    return leaf.look.hue == "state" and isinstance(leaf.look.icon, TableIcon)


def with_even_titles(flow: Flow, typography: Typography) -> Flow:
    """Return a diagram in which titles begin with names only where all uses of a block have room for theirs."""

    def has_room(leaf: Leaf) -> bool:
        beside = max(ICON_ROOM if leaf.look.icon is not None else PAD, params_room(leaf, typography))
        return typography.width(whole_title(leaf), "title") + 2 * beside <= WIDTH

    leaves = (leaf for leaf in flow.leaves() if isinstance(leaf, Leaf) and leaf.by_name)
    long = {leaf.look.title for leaf in leaves if not has_room(leaf)}
    return flow.map_leaves(lambda leaf: replace(leaf, by_name=leaf.by_name and leaf.look.title not in long)) if long else flow


def params_room(leaf: Leaf, typography: Typography) -> float:
    """Return the room for the number of parameters at the right of a title."""
    return typography.width(leaf.params, "params") + PAD + 8 if leaf.params else 0.0


def whole_title(leaf: Leaf) -> str:
    """Return the title of a block with its name before it where that tells which use of the block it is: `Prior · Gaussian`, or
    `Previous decoder` where the name says the title too; else the title alone.
    """
    name, title = spoken(leaf.name), leaf.look.title
    if not (leaf.by_name and leaf.name):
        return title
    return name if title.lower() in name.lower() else f"{name}{OF}{title}"


def picture_of(leaf: Leaf, typography: Typography) -> PlacedIcon | None:
    """Return the large picture that stands below what a block says, at the upper left corner of the page; none for others."""
    icon = leaf.look.icon
    large = isinstance(icon, ProductIcon) and icon.is_measured and not leaf.rows
    return PlacedIcon(icon, 0.0, 0.0, typography.scale) if icon is not None and large else None


def icon_room(leaf: Leaf) -> float:
    """Return how far from the left border a block begins to say something, behind its icon."""
    beside = leaf.look.icon is not None and not (isinstance(leaf.look.icon, ProductIcon) and leaf.look.icon.is_measured)
    return ICON_ROOM if beside else PAD


def name_room(leaf: Leaf, icon: float, typography: Typography) -> float:
    """Return the room for the name of a block, from the left border of its box, given that for its icon."""
    return icon + typography.width(leaf.name, "name") + NAME_GAP


def is_low(leaf: Leaf) -> bool:
    """Return whether a block says all in one line of small letters."""
    return leaf.look.low and not (leaf.rows or leaf.lines or leaf.params or leaf.look.icon)


def needed_in_line(leaf: Leaf, typography: Typography) -> float:
    """Return the width that a low block's title and detail want, or of a long detail that alone; its name is written where there
    is room.
    """
    title, detail = typography.width(leaf.look.title, "low"), typography.width(leaf.look.detail, "detail")
    both = title + (TITLE_GAP + detail if leaf.look.detail else 0.0) + 2 * PAD
    return both if both <= WIDTH else max(title, detail) + 2 * PAD


def tells_params_below(leaf: Leaf, narrow: bool) -> bool:
    """Return whether a narrow box tells how many parameters it has behind its facts: where these are nothing but a shape, the
    number would seem to go on with that.
    """
    return narrow and bool(leaf.look.facts) and not is_parameter(leaf)


def detail_of(leaf: Leaf, *, narrow: bool = False) -> str:
    """Return the line below the title."""
    said = [leaf.look.detail] if leaf.look.detail else []
    if leaf.look.mask and not leaf.look.known_mask:
        said.append(leaf.look.mask)
    if leaf.params and said and tells_params_below(leaf, narrow):
        said.append(leaf.params)
    return " · ".join(said)


def details_of(leaf: Leaf, *, narrow: bool = False) -> tuple[str, ...]:
    """Return what stands below the title, line by line: of a closed box and of values of many passes in a few, else in one."""
    detail = detail_of(leaf, narrow=narrow)
    long = len(detail) > LONGEST_FACT and is_list(detail)
    return in_lines((detail,)) if leaf.closed or long else (detail,) if detail else ()


def mask_first(leaf: Leaf, detail: str) -> str:
    """Return the line below the title with the mask behind the first fact, where not all of it has room."""
    first, *others = leaf.look.facts or ("",)
    if not first or leaf.look.known_mask or not leaf.look.mask or leaf.look.mask in first:
        return detail
    return " · ".join((first, leaf.look.mask, *others))


def with_mask(leaf: Leaf, detail: str, room: float, typography: Typography) -> str:
    """Return the line below the title, with a mask that its picture already tells in words where there is room for them."""
    word = leaf.look.known_mask if leaf.look.hue != "cross" and not leaf.look.double else ""
    longer = f"{detail} · {word}"
    return longer if word and typography.width(longer, "detail") <= room else detail


def box_height(leaf: Leaf, typography: Typography, *, narrow: bool = False) -> float:
    """Return the height of a block, with the picture below what it says."""
    large = picture_of(leaf, typography)
    return height_of_texts(leaf, typography, narrow=narrow) + (large.area.bottom + PICTURE_GAP if large is not None else 0.0)


def height_of_texts(leaf: Leaf, typography: Typography, *, narrow: bool = False) -> float:
    """Return the height of a block without such a picture."""
    if leaf.lines:
        least = ICON_LINE if leaf.look.icon is not None else ONE_LINE
        return max(LINE * typography.scale * len(leaf.lines) + 14, least) + rows_height(leaf, typography)
    if is_low(leaf):
        return LOW_LINE
    details = len(details_of(leaf, narrow=narrow))
    more = DETAIL_LINE * typography.scale * max(details - 1, 0)
    if leaf.rows:
        return (HEAD if details else PLAIN_HEAD) + more + rows_height(leaf, typography)
    if is_memory(leaf):
        return MEMORY_HEIGHT
    return TWO_LINES + more if details else ICON_LINE if leaf.look.icon is not None else ONE_LINE


def row_heights(leaf: Leaf, typography: Typography) -> list[float]:
    """Return the height of each row of a block."""
    least = ROW if any(row.look.icon is not None or row.look.detail for row in leaf.rows) else PLAIN_ROW
    return [least + DETAIL_LINE * typography.scale * (len(row_lines(row.share)) - 1) for row in leaf.rows]


def rows_height(leaf: Leaf, typography: Typography) -> float:
    """Return the height of all rows of a block."""
    return sum(row_heights(leaf, typography))


def swatches(row: Row) -> float:
    """Return how much room the cells of a row take before its texts."""
    return SWATCH * len(row.kinds) + 6 if row.kinds else 0.0


def box(leaf: Leaf, x: float, y: float, width: float, height: float, typography: Typography, *, narrow: bool = False) -> Box:
    """Return a block as a box around a middle x, its lower edge at y."""
    look, top = leaf.look, y - height
    whole, width = width, width - 2 * inset(leaf)
    if whole > width:  # nothing is cut for it
        width = min(max(width, _needed(leaf, typography, narrow=narrow, named=True)), whole)
    left, right = x - width / 2, x + width / 2
    own = box_height(leaf, typography, narrow=narrow)
    icons: list[PlacedIcon] = []
    heights = row_heights(leaf, typography)
    middle = top + height / 2 if not leaf.rows else top + (own - sum(heights)) / 2
    icon = PAD
    if (large := picture_of(leaf, typography)) is not None:
        room = large.area.bottom + PICTURE_GAP
        icons.append(large.moved(x - large.area.right / 2, middle + own / 2 - room))
        middle -= room / 2
    elif look.icon is not None and not leaf.rows:
        icons.append(PlacedIcon(look.icon, left + PAD, top + (height - ICON) / 2))
        icon = ICON_ROOM
    texts = (
        line_by_line(leaf, x + (icon - PAD) / 2, middle, typography)
        if leaf.lines
        else in_line(leaf, x, middle, width, typography)
        if is_low(leaf)
        else headed(leaf, x, middle, width, icon, narrow, typography)
    )
    for number, row in enumerate(leaf.rows):
        row_high, upper = heights[number], top + own - sum(heights[number:]) - 3
        start = left + PAD
        above = any(one.look.icon is not None for one in leaf.rows)
        if row.look.icon is not None:
            icons.append(PlacedIcon(row.look.icon, start, upper))
        start += ICON + ROW_GAP if above else 0
        if row.kinds:
            icons.append(PlacedIcon(Swatch(row.kinds), start, upper + (2.5 if row.look.detail else row_high / 2 - 5.5)))
            start += swatches(row)
        space = right - PAD - start
        below = row.look.detail
        said = row_lines(row.share)
        further = DETAIL_LINE * typography.scale * (len(said) - 1)
        line = 11 if below else (row_high - further) / 2 + 3 * typography.scale
        for at, each in enumerate(said):
            at_y = upper + line + DETAIL_LINE * typography.scale * at
            texts.append(Text(start, at_y, typography.fitted(each, "row", space), "row", "start", typography.scale))
        if below:
            texts.append(
                Text(
                    start,
                    upper + further + 22 + 2 * typography.scale,
                    typography.fitted(below, "detail", space),
                    "detail",
                    "start",
                    typography.scale,
                )
            )
    dashed = look.hue in ("loss", "state")
    start, parallel = x - whole / 2, leaf.parallel
    placed = start, top, whole, height, tuple(texts), tuple(icons)
    drawn = Box(leaf.about, look.hue, *placed, dashed, look.double, places=leaf.places, parallel=parallel)
    return replace(drawn, block=look.title if leaf.by_name else "")


def headed(leaf: Leaf, x: float, middle: float, width: float, icon: float, narrow: bool, typography: Typography) -> list[Text]:
    """Return the title, the lines below it and the parameters around a height."""
    details = details_of(leaf, narrow=narrow)
    params = "" if details and tells_params_below(leaf, narrow) else leaf.params
    beyond = typography.width(params, "params") + PAD + 8 if params else PAD
    room = width - 2 * max(icon, beyond)
    size = typography.scale
    top = middle - DETAIL_LINE * size * max(len(details) - 1, 0) / 2
    title, name = whole_title(leaf), ""
    if title == leaf.look.title or typography.width(title, "title") > room:
        title, name = typography.fitted(leaf.look.title, "title", room), leaf.name
    if leaf.in_formula and name:
        half = typography.width(title, "title") / 2
        least = x - width / 2 + name_room(leaf, icon, typography) + half  # where the name stands beside it
        at = least if x < least <= x + width / 2 - beyond - half else x
    else:
        at = x
    texts = [Text(at, top - 3 if details else top + 4.5 * size, title, "title", scale=size)]
    for number, said in enumerate(fitted_lines(leaf, details, width - icon - PAD, typography)):
        role: Role = "shape" if leaf.model_input else "detail"  # what is left out where shapes are
        offset = max(0.0, typography.width(said, "detail") / 2 - width / 2 + icon)  # in the middle as far as the icon lets it
        texts.append(Text(x + offset, top + 9 + 3.5 * size + DETAIL_LINE * size * number, said, role, scale=size))
    start = x - width / 2 + icon
    beside = top - 4 if details else top + 3.5 * size
    if name and start + typography.width(name, "name") + NAME_GAP <= texts[0].area.left + 0.01:
        texts.append(Text(start, beside, name, "name", "start", scale=size))
    if params:
        texts.append(Text(x + width / 2 - PAD, beside, params, "params", "end", size))
    return texts


def fitted_lines(leaf: Leaf, details: Sequence[str], room: float, typography: Typography) -> list[str]:
    """Return the lines below a title as far as there is room for each; one alone with the mask behind the first fact where it
    is too long, and the last one with a mask that its picture already tells where that has room.
    """
    if not details:
        return []
    *others, last = details
    if not others and typography.width(last, "detail") > room:
        last = mask_first(leaf, last)
    return [typography.fitted(line, "detail", room) for line in (*others, with_mask(leaf, last, room, typography))]


def in_line(leaf: Leaf, x: float, middle: float, width: float, typography: Typography) -> list[Text]:
    """Return the title, the detail and the name beside each other at a height: title and detail in the middle of the box, or so
    far at the right that the name has room, the detail alone where both have no room.
    """
    size, room, y = typography.scale, width - 2 * PAD, middle + 3.5 * typography.scale
    said: list[tuple[Role, str]] = [("low", leaf.look.title), ("detail", leaf.look.detail)]
    said = [one for one in said if one[1]]
    if len(said) > 1 and TITLE_GAP + sum(typography.width(text, role) for role, text in said) > room:
        del said[0]
    said = [(role, typography.fitted(text, role, room)) for role, text in said]
    widths = [typography.width(text, role) for role, text in said]
    long = sum(widths) + TITLE_GAP * (len(said) - 1)
    left = x - long / 2
    if leaf.name:
        behind = x - width / 2 + PAD + typography.width(leaf.name, "name") + NAME_GAP
        left = max(left, behind) if behind + long <= x + width / 2 - PAD else left
    texts = [Text(left, y, said[0][1], said[0][0], "start", size)]
    if len(said) > 1:
        texts.append(Text(left + widths[0] + TITLE_GAP, y, said[1][1], "detail", "start", size))
    if leaf.name and x - width / 2 + PAD + typography.width(leaf.name, "name") + NAME_GAP <= left:
        texts.append(Text(x - width / 2 + PAD, y, leaf.name, "name", "start", size))
    return texts


def line_by_line(leaf: Leaf, x: float, middle: float, typography: Typography) -> list[Text]:
    """Return all that a block says on a narrow page."""
    line_height = LINE * typography.scale
    first = middle - line_height * (len(leaf.lines) - 1) / 2 + 4
    return [
        Text(x, first + line_height * number, line, role, scale=typography.scale)
        for number, (role, line) in enumerate(leaf.lines)
    ]
