"""Which variables of which objects a dashboard shows, read out of its script as the console reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from terrazzo.metadata.lookup import as_id

MOST_WIDGETS = 300  # of a page
MOST_VALUES = 50  # of a widget
MOST_OBJECTS = 24  # of a page


def read_dashboard_values(script: Any, shown: int | None = None) -> dict[int, frozenset[str]]:
    """Codes by object's id.

    Args:
        script: pages by name (``docs/dashboards.md``); what is none has no values.
        shown: the object that takes the place of each page's own.
    """
    found: dict[int, set[str]] = {}
    for page in script.values() if isinstance(script, Mapping) else ():
        if isinstance(page, Mapping):
            of_page: dict[int, set[str]] = {}
            for object_id, code in _values(page, shown):
                if object_id in of_page or len(of_page) < MOST_OBJECTS:
                    of_page.setdefault(object_id, set()).add(code)
            for object_id, codes in of_page.items():
                found.setdefault(object_id, set()).update(codes)
    return {object_id: frozenset(codes) for object_id, codes in found.items()}


def read_dashboard_pictures(script: Any) -> frozenset[str]:
    """The uids of the pictures on which pages' widgets stand."""
    pages = script.values() if isinstance(script, Mapping) else ()
    found = (page.get("picture") for page in pages if isinstance(page, Mapping))
    return frozenset(each for each in found if isinstance(each, str) and each)


def _values(page: Mapping[str, Any], shown: int | None) -> Iterator[tuple[int, str]]:
    socket, data = page.get("webSocket"), page.get("data")
    own = _text(socket.get("objectId")) if isinstance(socket, Mapping) else ""
    for widget in data[:MOST_WIDGETS] if isinstance(data, list) else ():
        if not isinstance(widget, Mapping):
            continue
        for named, code in _of_widget(widget):
            text = named or own
            object_id = shown if shown is not None and text == own else as_id(text)
            if object_id is not None and code:
                yield object_id, code


def _of_widget(widget: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    attribute = widget.get("attribute")
    values = attribute.get("values") if isinstance(attribute, Mapping) else None
    if isinstance(values, list):
        for each in values[:MOST_VALUES]:
            if isinstance(each, Mapping):
                yield _text(each.get("objectId")), _text(each.get("code"))
    else:
        yield "", _text(widget.get("name"))


def _text(value: Any) -> str:
    """Text and numbers, as a browser writes them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return str(int(value)) if value == value // 1 else str(value)
