"""Topic names and topic filters as text. [MQTT-4.7]"""

from __future__ import annotations

from typing import NamedTuple


class Shared(NamedTuple):
    """A topic filter without ``$share/...``, and the share name, None where it isn't shared. [MQTT-4.8.2-1]"""

    group: str | None
    filter: str


def is_topic_name(topic: str) -> bool:
    """Whether a text is a topic name to publish on: not empty and without wildcards.

    [MQTT-4.7.0-1] [MQTT-4.7.3-1]; [MQTT-4.7.1-1] [MQTT-4.7.3-1] of 3.1.1
    """
    return bool(topic) and "+" not in topic and "#" not in topic


def is_topic_filter(pattern: str, *, levels: int) -> bool:
    """Whether a text is a topic filter: each wildcard fills a level, # is the last, at most ``levels`` levels."""
    if not pattern or pattern.count("/") >= levels:
        return False
    if "#" not in pattern and "+" not in pattern:
        return True
    parts = pattern.split("/")
    if "#" in pattern and ("#" in "".join(parts[:-1]) or parts[-1] != "#"):  # [MQTT-4.7.1-1]; [MQTT-4.7.1-2] of 3.1.1
        return False
    return all(part == "+" or "+" not in part for part in parts)  # [MQTT-4.7.1-2]; [MQTT-4.7.1-3] of 3.1.1


def split_shared(pattern: str) -> Shared | None:
    """Splits ``$share/<group>/<filter>``; None where it starts like that and isn't well formed. [MQTT-4.8.2-2]"""
    if not (pattern == "$share" or pattern.startswith("$share/")):
        return Shared(None, pattern)
    _, _, rest = pattern.partition("/")
    group, slash, inner = rest.partition("/")
    if not group or not slash or not inner or "+" in group or "#" in group:
        return None
    return Shared(group, inner)


def matches(pattern: str, topic: str) -> bool:
    """Whether a filter (not a shared one) matches a topic name. [MQTT-4.7.2-1] [MQTT-4.7.3-4] of both"""
    filter_parts, topic_parts = pattern.split("/"), topic.split("/")
    if topic.startswith("$") and filter_parts[0] in ("+", "#"):
        return False
    for index, part in enumerate(filter_parts):
        if part == "#":
            return True
        if index >= len(topic_parts) or part not in ("+", topic_parts[index]):
            return False
    return len(filter_parts) == len(topic_parts)
