"""One path of a component: an operation behind a path of its own, with its result in the component's shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from terrazzo.api.operation import Operation


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
