"""Whatever the console can show by an address is in the table of views, so that each walk goes there."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import parse_qs

from console_build import CONSOLE
from routes import DIALOGS, OF_RECORDS, ROUTES, SUPER, WALL

TABLE = {*ROUTES.values(), *DIALOGS.values(), *SUPER.values(), *(route for _, route in OF_RECORDS.values()), WALL}
SOURCES = {
    path.relative_to(CONSOLE).as_posix(): path.read_text(encoding="utf-8")
    for path in CONSOLE.glob("*/*.ts*")
    if path.parts[-2] not in ("tests", "generated", "node_modules")
}

OUTSIDE = {
    "a list that the table has, narrowed or in another order": (
        "q group page sort search online refused out tag site config compared severity day object terminal slow filter "
        "username entity uid start end batch channel type kind hours down"
    ),
    "what a dialog begins with, which `new` opens": "code",
    "a row of a list that the table has, which is marked": "label",
    "where a map is looked at": "at",
    "what a chart shows": "from span none",
    "what a single sign-on comes back with": "code state error",
    "a wall that turns its pages": "rotate",
}
"""Why a walk need not go where these parameters of an address lead."""


def asked_of(route: str) -> set[str]:
    """The parameters of a route."""
    return set(parse_qs(route.partition("?")[2], keep_blank_values=True))


def test_every_page_is_in_the_table() -> None:
    pages = re.findall(r'\{ id: "([\w-]+)"', SOURCES["shell/pages.ts"])
    assert len(pages) > 10
    assert set(pages) - {re.split(r"[/?]", route)[1] for route in TABLE} == set()


def test_every_dialog_that_an_address_opens_is_in_the_table() -> None:
    opened = Counter(
        (path.partition("/")[0], name)
        for path, text in SOURCES.items()
        for name in re.findall(r'\buseAsked\("([\w-]+)"', text)
    )
    assert len(opened) > 5
    there = Counter(
        (re.split(r"[/?]", route)[1], parse_qs(route.partition("?")[2])["do"][0]) for route in TABLE if "do=" in route
    )
    assert opened - there == Counter()
    assert {name for _, name in there} == {name for _, name in opened}, "a list may stand on several pages"


def test_every_parameter_that_a_page_reads_is_in_the_table_or_excused() -> None:
    read = {name for text in SOURCES.values() for name in re.findall(r'\bquery\.(?:get|has)\("([\w-]+)"\)', text)}
    assert {"tab", "do", "edit"} <= read
    walked = {name for route in TABLE for name in asked_of(route)}
    excused = {name for names in OUTSIDE.values() for name in names.split()}
    assert read - walked - excused == set()
    assert excused - read == set(), "nothing reads them any more"


def test_every_place_that_a_search_finds_is_in_the_table() -> None:
    places = re.findall(
        r'\b(part|action)\("(\w+)", [\w.]+(?:, \[(.*?)\])?(?:, \{ (.*?) \})?[,)]', SOURCES["shell/places.ts"]
    )
    assert len(places) > 20
    found = set()
    for kind, page, path, query in places:
        asked = re.sub(r'(\w+): "(\w+)",? ?', r"\1=\2&", query).rstrip("&") or ("do=add" if kind == "action" else "")
        steps = [page, *re.findall(r'"([\w-]+)"', path)]
        found.add("#/" + "/".join(steps) + (f"?{asked}" if asked else ""))
    assert found - TABLE == set()
