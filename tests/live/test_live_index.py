"""Who is told of what: by kind, company, object and terminal."""

from __future__ import annotations

import pytest

from terrazzo.domain.registry import Registry
from terrazzo.live.hub import LiveHub
from terrazzo.live.selector import Selector


@pytest.fixture
def registry() -> Registry:
    known = Registry()
    known.put_object(7, ["t1", "t2"], company_id=1)
    known.put_object(8, ["t2"], company_id=1)
    return known


@pytest.fixture
def hub(registry: Registry) -> LiveHub:
    return LiveHub(registry, started_us=1)


SELECTORS = {
    "grid of object 7": Selector(frozenset({"grid"}), 1, object_id=7),
    "grid of t1": Selector(frozenset({"grid"}), 1, terminal_id="t1"),
    "grid of company 1": Selector(frozenset({"grid"}), 1),
    "grid of company 2": Selector(frozenset({"grid"}), 2),
    "grid of all": Selector(frozenset({"grid"}), None),
    "events of object 7": Selector(frozenset({"event"}), 1, object_id=7),
    "events of t1": Selector(frozenset({"event"}), 1, terminal_id="t1"),
    "events and grid of 7 and t2": Selector(frozenset({"event", "grid"}), 1, object_id=7, terminal_id="t2"),
    "object 7, as company 2": Selector(frozenset({"event", "grid"}), 2, object_id=7),
    "t1, as company 2": Selector(frozenset({"event", "grid"}), 2, terminal_id="t1"),
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (("grid", 1, None, "t1"), {"grid of object 7", "grid of t1", "grid of company 1", "grid of all"}),
        (
            ("grid", 1, None, "t2"),
            {"grid of object 7", "grid of company 1", "grid of all", "events and grid of 7 and t2"},
        ),
        (("grid", 1, None, "t3"), {"grid of company 1", "grid of all"}),
        (("grid", 2, None, "t9"), {"grid of company 2", "grid of all"}),
        (
            ("grid", 2, None, "t1"),
            {"grid of company 2", "grid of all", "t1, as company 2", "object 7, as company 2"},
        ),
        (("event", 1, 7, None), {"events of object 7", "events and grid of 7 and t2"}),
        (("event", 1, 7, "t1"), {"events of object 7", "events of t1", "events and grid of 7 and t2"}),
        (("event", 1, 8, None), set()),
        (("mosaic", 1, 7, None), set()),
    ],
)
def test_the_feeds_of_what_happens(
    hub: LiveHub, source: tuple[str, int, int | None, str | None], expected: set[str]
) -> None:
    names = {hub.open_feed(selector): name for name, selector in SELECTORS.items()}
    found = hub.index.find(*source)
    assert {names[feed] for feed in found} == expected
    assert len(found) == len(expected), "nobody is told twice"


def test_an_object_follows_its_terminal_list(hub: LiveHub, registry: Registry) -> None:
    feed = hub.open_feed(SELECTORS["grid of object 7"])
    assert hub.index.find("grid", 1, None, "t3") == ()
    registry.put_object(7, ["t3"], company_id=1)
    assert hub.index.find("grid", 1, None, "t3") == (feed,)
    assert hub.index.find("grid", 1, None, "t1") == ()
    registry.drop_object(7)
    assert hub.index.find("grid", 1, None, "t3") == ()


def test_equal_selections_share_a_feed_and_its_end_is_found(hub: LiveHub) -> None:
    selector = SELECTORS["grid of t1"]
    assert hub.open_feed(selector) is hub.open_feed(Selector(frozenset({"grid"}), 1, terminal_id="t1"))
    hub.index.remove(hub.open_feed(selector))
    assert hub.index.find("grid", 1, None, "t1") == ()
