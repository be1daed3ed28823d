"""One path of a component: an operation behind a path of its own, with its result in the component's shape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from terrazzo.api.kernel.envelope import ComponentReply, MessengerReply, Reply
from terrazzo.api.kernel.operation import Operation


def nothing(_result: Any) -> msgspec.UnsetType:
    """Of changes, whose answers carry only ``code``, ``msg`` and ``info``."""
    return msgspec.UNSET


def as_it_is(result: Any) -> Any:
    """Of results that have the component's shape already."""
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentPath:
    """One path of a component, below the component's prefix."""

    base: str  # which prefix
    path: str
    operation: Operation
    result: Any  # the type that ``shape`` makes of the operation's result
    shape: Callable[[Any], Any] = as_it_is
    method: str = "GET"
    reply: Callable[[Callable[[Any], Any]], Reply] = ComponentReply
    takes_files: bool = False  # a form's files become its field ``attachments``
    instead: Mapping[str, Operation] = field(default_factory=dict)  # what a field that is given makes of the operation

    @property
    def is_messenger(self) -> bool:
        """Whether answers say what a provider said."""
        return self.reply is MessengerReply

    def choose(self, names: Collection[str]) -> Operation:
        """The operation that a request with these fields is for."""
        return next((each for name, each in self.instead.items() if name in names), self.operation)
