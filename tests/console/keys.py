"""A person at the keyboard: where the focus is, whether one sees it there, and how to come to something by Tab."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from browser import Tab

MOST_STOPS = 150
"""Stops that are looked at on a page: a long list has one or more in each row."""
_AT = """(() => {
  const at = document.activeElement;
  if (!at || at === document.body || at === document.documentElement) return null;
  const shown = at.matches('input.sr') ? at.closest('label') : at;  // such a field is what its label looks like
  const style = getComputedStyle(shown);
  const box = shown.getBoundingClientRect();
  const inside = (x, y) => {
    const top = document.elementFromPoint(x, y);
    return top !== null && (shown.contains(top) || (top.contains(shown) && top.matches('label')));
  };
  const places = [0.02, 0.25, 0.5, 0.75, 0.98];
  const name = at.getAttribute('aria-label') || at.labels?.[0]?.innerText || at.innerText || at.placeholder || '';
  const isDrawn = style.outlineStyle !== 'none' && !/^rgba\\(.*, 0\\)$/.test(style.outlineColor);
  return {
    name: name.trim().slice(0, 120),
    what: at.getAttribute('role') || at.tagName.toLowerCase(),
    html: at.outerHTML.slice(0, 160),
    is_outlined: isDrawn && parseFloat(style.outlineWidth) >= 2,
    is_in_view: places.some((x) => places.some((y) => inside(box.left + x * box.width, box.top + y * box.height))),
    number: (window.stops ??= new Map()).get(at) ?? (stops.set(at, stops.size), stops.size - 1),
  };
})()"""


@dataclass(frozen=True)
class Stop:
    """What has the focus.

    Attributes:
        number: one of its own for each element of the document.
        is_outlined: whether there is an outline around it.
        is_in_view: whether at least a part of it is on the screen, with nothing over it.
    """

    name: str
    what: str
    html: str
    is_outlined: bool
    is_in_view: bool
    number: int


class Keys:
    """Presses keys in a tab, and touches no pointer."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab

    def press(self, *keys: str) -> None:
        """One key after the other, as `Control+k` or `Tab`."""
        for key in keys:
            self._tab.page.keyboard.press(key)

    def write(self, text: str) -> None:
        """Types a text where the focus is."""
        self._tab.page.keyboard.type(text)

    def at(self) -> Stop | None:
        """What has the focus; nothing where only the document has it."""
        found: dict[str, Any] | None = self._tab.run(_AT)
        return None if found is None else Stop(**found)

    def seen(self) -> Stop:
        """What has the focus, which one must see there."""
        stop = self.at()
        assert stop is not None, "the focus is nowhere"
        assert stop.is_outlined, f"no outline around {stop.html}"
        assert stop.is_in_view, f"the focus is out of sight at {stop.html}"
        return stop

    def to(self, name: str, what: str | None = None, *, key: str = "Tab") -> Stop:
        """Goes on by Tab until what has the focus is so named (a pattern); each stop on the way must be seen."""
        for _ in range(MOST_STOPS):
            self.press(key)
            if self.at() is None:
                continue  # the end of the document, behind which it begins anew
            stop = self.seen()
            if re.search(name, stop.name) and what in (None, stop.what):
                return stop
        raise AssertionError(f"nothing by the name of {name!r} in {MOST_STOPS} stops")

    def around(self, *, key: str = "Tab", most: int = MOST_STOPS) -> list[Stop]:
        """The stops of the page, until one comes for the second time, or after ``most`` keys."""
        found: dict[int, Stop] = {}
        last = None
        for _ in range(most):
            self.press(key)
            stop = self.at()
            if stop is None or stop.number == last:  # a date has stops of its own within it
                continue
            if stop.number in found:
                break
            found[stop.number], last = stop, stop.number
        return list(found.values())
