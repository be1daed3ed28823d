"""A terminal's column ``topic``: channels it may publish on, filters it may subscribe to (docs/terminals.md). Pure."""

from __future__ import annotations

import msgspec

from terrazzo.reasons import say

CHANNELS = "ravpin"
"""The channels: real-time values, alarms, versions, parameters, information, notices."""


class TopicPermission(msgspec.Struct, frozen=True):
    """Channels that a terminal may publish on, and filters that it may subscribe to besides its own ``p2p/<uid>``."""

    channels: frozenset[str] = frozenset()
    filters: tuple[str, ...] = ()
    own_reports: bool = False  # may subscribe to g/<uid>/# of itself


ALL_OWN = TopicPermission(frozenset(CHANNELS), (), own_reports=True)


NOTHING = TopicPermission()


def parse_topic_permission(text: str) -> TopicPermission:
    """Reads ``all``, or ``pub:r,a,v,p,i,n;sub:g/#`` with either part left out.

    Raises:
        ValueError: the message names the part that is wrong.
    """
    if text.strip() == "all":
        return ALL_OWN
    channels: frozenset[str] | None = None
    filters: tuple[str, ...] | None = None
    for part in text.split(";"):
        verb, _, rest = part.strip().partition(":")
        items = [item.strip() for item in rest.split(",")]
        if verb == "pub" and channels is None:
            channels = _parse_channels(items)
        elif verb == "sub" and filters is None:
            filters = tuple(map(_parse_filter, items))
        else:
            raise ValueError(say("access_expected", part=part.strip()))
    return TopicPermission(channels or frozenset(), filters or ())


def _parse_channels(items: list[str]) -> frozenset[str]:
    for item in items:
        if item not in _CHANNEL_SET:
            raise ValueError(say("pub_no_channel", channel=item, channels=", ".join(CHANNELS)))
    return frozenset(items)


def _parse_filter(item: str) -> str:
    levels = item.split("/")
    if not item or "\0" in item:
        raise ValueError(say("sub_no_filter", filter=item))
    if levels[0] == "$share":
        raise ValueError(say("sub_shared", filter=item))
    for depth, level in enumerate(levels, 1):
        misplaced = level == "#" and depth < len(levels)
        if misplaced or (len(level) > 1 and ("#" in level or "+" in level)):
            raise ValueError(say("sub_wildcards", filter=item))
    return item


_CHANNEL_SET = frozenset(CHANNELS)
