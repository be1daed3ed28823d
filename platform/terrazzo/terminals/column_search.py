"""Which terminals of the columns are meant, and a page of them in order. For a thread: numpy is loaded here."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from terrazzo.terminals.presence_columns import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

Rank = Literal["online", "last_seen", "last_refused"]
Pairs: TypeAlias = "tuple[array[int], array[int]]"  # record ids, and times in UTC microseconds


class Meant(NamedTuple):
    """Whom a list means, and what is known of them; times in UTC microseconds, both ends inclusive."""

    columns: Columns
    among: array[int] | None = None  # record ids in the order of the list; None: all of the company
    company_id: int | None = None  # None: every one's
    online: bool | None = None
    out_of_service: bool | None = None
    seen_after_us: int | None = None
    seen_before_us: int | None = None
    refused_after_us: int | None = None
    rank: Rank | None = None
    falls: bool = False
    heard: Pairs = (array("q"), array("q"))  # those that are connected, if it matters when they were heard of
    refused: Pairs = (array("q"), array("q"))  # those that were refused, if it matters
    resting: array[int] = array("q")  # those that are out of service, if it matters
    silent: array[int] | None = None  # those that are silent; None: it doesn't matter
    at_site: array[int] | None = None  # those of a site; None: it doesn't matter


def page_of(meant: Meant, start: int, size: int | None) -> tuple[list[int], int]:
    """The record ids of a page, all of them where ``size`` is None, and how many are meant in all."""
    ids, ranks = _meant(meant)
    if ranks is None:
        return ids[start : None if size is None else start + size].tolist(), len(ids)
    if meant.falls:
        ids, ranks = ids[::-1], -ranks[::-1]
    last = len(ids) if size is None else min(start + size, len(ids))
    return ids[first_in_order(ranks, last)[start:]].tolist(), len(ids)


def first_in_order(ranks: Numbers, count: int) -> Numbers:
    """Where the first ones in order stand; of equal ranks that which comes first."""
    import numpy as np

    if not 0 < count < len(ranks):
        return np.argsort(ranks, kind="stable")[:count]
    most = np.partition(ranks, count - 1)[count - 1]
    below = np.flatnonzero(ranks < most)
    below = below[np.argsort(ranks[below], kind="stable")]
    return np.concatenate((below, np.flatnonzero(ranks == most)[: count - len(below)]))


def _meant(meant: Meant) -> tuple[Numbers, Numbers | None]:
    """The record ids of all that are meant, and their ranks; in the order of ``among`` where there is none."""
    import numpy as np

    all_ids, companies = np.array(meant.columns.ids), np.array(meant.columns.companies)
    mask = companies >= 0 if meant.company_id is None else companies == meant.company_id
    at = np.flatnonzero(mask) if meant.among is None else _places(all_ids, np.array(meant.among), mask, meant.rank)
    online = np.array(meant.columns.online)
    seen_us, refused_us = np.array(meant.columns.seen_us), np.zeros_like(all_ids)
    _set(seen_us, all_ids, meant.heard)
    _set(refused_us, all_ids, meant.refused)
    for is_meant in _conditions(meant, all_ids, online, seen_us, refused_us):
        at = at[is_meant[at]]
    columns = {"online": online, "last_seen": seen_us, "last_refused": refused_us}
    return all_ids[at], None if meant.rank is None else columns[meant.rank][at].astype(np.int64)


def _conditions(meant: Meant, all_ids: Numbers, online: Any, seen_us: Numbers, refused_us: Numbers) -> Sequence[Any]:
    import numpy as np

    found = []
    if meant.online is not None:
        found.append(online == meant.online)
    if meant.out_of_service is not None:
        found.append(np.isin(all_ids, np.array(meant.resting)) == meant.out_of_service)
    found += [np.isin(all_ids, np.array(each)) for each in (meant.silent, meant.at_site) if each is not None]
    if meant.seen_after_us is not None:
        found.append(seen_us >= meant.seen_after_us)
    if meant.seen_before_us is not None:
        found.append(seen_us <= meant.seen_before_us)
    if meant.refused_after_us is not None:
        found.append(refused_us >= meant.refused_after_us)
    return found


def _places(all_ids: Numbers, ids: Numbers, mask: Any, rank: Rank | None) -> Numbers:
    """Where those of the ids stand that are meant; in their own order, but by id where there is another one."""
    import numpy as np

    if not len(all_ids):
        return all_ids
    at = np.searchsorted(all_ids, ids)
    at[at == len(all_ids)] = 0
    at = at[(all_ids[at] == ids) & mask[at]]
    return at if rank is None else np.sort(at)


def _set(column: Numbers, all_ids: Numbers, pairs: Pairs) -> None:
    """Puts the times of some record ids into a column; ids that are unknown are left out."""
    import numpy as np

    ids, times = np.array(pairs[0]), np.array(pairs[1])
    if len(ids) and len(all_ids):
        at = np.searchsorted(all_ids, ids)
        at[at == len(all_ids)] = 0
        is_known = all_ids[at] == ids
        column[at[is_known]] = times[is_known]
