"""Which keys of a text the queries of later tokens may still see, so that a session can drop the others."""

from __future__ import annotations

from dataclasses import dataclass

from blocks.masks.areas import All, Band, Below, BlockBand, MaskArea, Some
from blocks.masks.mask import Mask


@dataclass(frozen=True, slots=True)
class KeptKeys:
    """The keys before a query that it may see: the first ones of the text, and the latest ones."""

    first: int
    """How many of the first keys of the text."""
    latest: int
    """How many keys just before the query."""

    @property
    def count(self) -> int:
        """How many keys a query sees at most, its own included."""
        return self.first + self.latest + 1


def kept_keys(mask: Mask) -> KeptKeys | None:
    """Return the keys before a query that a mask may let it see, whatever its data; None if their number grows with the text, or
    if that cannot be told from its `area`, or if the mask is itself data about pairs.
    """
    if any("query" in type_ for type_ in mask.edge_types().values()):
        return None
    return _of_area(mask.area(1, 1, True))


def _of_area(area: MaskArea) -> KeptKeys | None:
    match area:
        case False:
            return KeptKeys(0, 0)
        case Band(high=int(high)):
            return KeptKeys(0, max(0, high))
        case Below(limit=limit):  # a query below the limit sees no later keys, so only keys below it too
            return KeptKeys(max(0, limit), 0)
        case BlockBand(block=block, radius=radius, first_q=first_q, first_k=first_k):
            return KeptKeys(0, max(0, (radius + 1) * block - 1 + first_k - first_q))
        case All(areas=areas):
            bounds = [bound for one in areas if (bound := _of_area(one)) is not None]
            return min(bounds, key=lambda bound: bound.count, default=None)
        case Some(areas=areas):
            every = [_of_area(one) for one in areas]
            known = [bound for bound in every if bound is not None]
            if len(known) < len(every):
                return None
            return KeptKeys(max((one.first for one in known), default=0), max((one.latest for one in known), default=0))
    return None
