"""``TopicSelection``: many MQTT filters as one tree, so that a topic is held against all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_END = ""  # a filter ends here; levels have a slash before them, so that an empty one is another
_Node = dict[str, Any]


class TopicSelection:
    """The filters, each of which may begin with ``own`` (``g/<uid>/``) or with the channel."""

    def __init__(self, filters: Iterable[str], *, own: str) -> None:
        self._own = own
        self._root: _Node = {}
        for each in filters:
            node = self._root
            for level in each.split("/"):
                node = node.setdefault("/" + level, {})
            node[_END] = True

    def selects(self, topic: str) -> bool:
        """Whether one of them matches the topic, with ``own`` or without it."""
        return self._matches(topic) or self._matches(topic.removeprefix(self._own))

    def _matches(self, topic: str) -> bool:
        nodes = [self._root]
        for number, level in enumerate(topic.split("/")):
            found: list[_Node] = []
            for node in nodes:
                if number or not topic.startswith("$"):  # [MQTT-4.7.2-1]
                    if "/#" in node:
                        return True
                    if "/+" in node:
                        found.append(node["/+"])
                if "/" + level in node:
                    found.append(node["/" + level])
            if not found:
                return False
            nodes = found
        return any(_END in node or "/#" in node for node in nodes)
