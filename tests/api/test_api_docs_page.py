"""The page at /docs: everything is in it, it works in a browser, and it loads nothing from outside."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from api_rig import PASSWORD, Rig

import terrazzo.api.openapi
from chromium import Tab, chromium
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from turns_of_loop import longest_turn

FILES = Path(terrazzo.api.openapi.__file__).parent / "docs_page"
TOKENS = Path(__file__).parents[2] / "platform" / "console" / "style" / "tokens.css"
OUTSIDE = re.compile(r"(https?:)?//[\w.-]+\.\w+|url\(|@import")


def test_no_file_names_anything_outside() -> None:
    files = sorted(FILES.iterdir())
    assert [file.name for file in files] == ["docs.css", "docs.js", "index.html", "schema.js"]
    for file in files:
        assert OUTSIDE.search(file.read_text(encoding="utf-8")) is None, file.name


def _themes(text: str) -> list[dict[str, str]]:
    """The colours of each block of tokens, in their order."""
    blocks = re.findall(r"color-scheme: (?:light|dark);([^}]*)\}", text)
    return [dict(re.findall(r"(--[\w-]+): ([^;]+);", block)) for block in blocks]


def test_its_colours_are_those_of_the_console_in_both_themes() -> None:
    light, dark = _themes(TOKENS.read_text(encoding="utf-8"))
    own = _themes((FILES / "docs.css").read_text(encoding="utf-8"))
    assert len(own) == 3  # light, dark by the system, dark by choice
    assert min(map(len, own)) > 10
    for found, wanted in zip(own, (light, dark, dark), strict=True):
        assert found == {name: wanted[name] for name in found}


async def test_the_first_who_asks_for_the_document_holds_up_nobody(rig: Rig) -> None:
    async def size() -> int:
        async with rig.http.get("/openapi.json") as response:
            return len(await response.read())

    async with longest_turn() as turns:
        sizes = await asyncio.gather(size(), size())
    assert sizes[0] == sizes[1] > 500_000
    assert turns.cpu_s < 0.1


async def test_the_policy_allows_nothing_from_outside(rig: Rig) -> None:
    for path in ("/docs", "/docs/docs.js", "/docs/docs.css", "/docs/schema.js"):
        async with rig.http.get(path) as response:
            assert response.status == 200
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert OUTSIDE.search(policy) is None
    async with rig.http.get("/docs/../../table.py") as response:
        assert response.status == 404


async def test_it_lists_everything_and_calls_the_api(rig: Rig, tmp_path: Path) -> None:
    await rig.add_terminal("t1")
    base = str(rig.http._base_url).rstrip("/")
    async with chromium(tmp_path) as tab:
        await tab.open(f"{base}/docs")
        await tab.wait("document.querySelector('.overview')")
        assert await _ground(tab) == "rgb(246, 247, 248)"
        await tab.run("localStorage.setItem('terrazzo-theme', 'dark')")  # chosen in the console
        await tab.open(f"{base}/docs")
        await tab.wait("document.querySelector('.overview')")
        assert await _ground(tab) == "rgb(16, 22, 27)"
        listed = await tab.run("[...document.querySelectorAll('#index a')].map((each) => each.textContent)")
        assert listed[: len(list(TABLE))] == [operation.name for operation in TABLE]
        assert len(listed) > len(list(TABLE)) + len({path.path for path in PATHS})
        await tab.run(_fill("login", username="admin-user", password="wrong"))
        await tab.wait("document.querySelector('#account-says').textContent")
        await tab.run(_fill("login", username="admin-user", password=PASSWORD))
        await tab.wait("document.querySelector('#who').textContent === 'Logged in: admin-user'")
        await tab.run("location.hash = 'get_terminal_item'")
        await tab.wait("document.querySelector('h1').textContent === 'get_terminal_item'")
        await tab.run(_fill("try", body='{"action": "get_terminal_item", "uid": "t1"}'))
        await tab.wait("document.querySelector('.says.good')")
        answer = json.loads(await tab.run("document.querySelector('#try pre').textContent"))
        assert answer["result"]["uid"] == "t1"
        await tab.run(f"location.hash = encodeURIComponent('GET {next(iter(PATHS)).path}')")
        assert set(tab.requests) == {
            f"{base}{path}"
            for path in (
                "/docs",
                "/docs/docs.css",
                "/docs/docs.js",
                "/docs/schema.js",
                "/openapi.json",
                "/apiproxy/api",
            )
        }
        assert tab.errors == []


async def test_every_entry_fits_a_phone(rig: Rig, tmp_path: Path) -> None:
    base = str(rig.http._base_url).rstrip("/")
    async with chromium(tmp_path) as tab:
        await tab.open(f"{base}/docs", width=360, dark=True)
        await tab.wait("document.querySelector('.overview')")
        too_wide = await tab.run(
            """(async () => {
                 const wide = [];
                 for (const link of [...document.querySelectorAll('#index a')].map((each) => each.hash)) {
                   const shown = new Promise((resolve) => addEventListener('hashchange', resolve, {once: true}));
                   location.hash = link;
                   await shown;
                   if (document.documentElement.scrollWidth > innerWidth) wide.push(link);
                 }
                 return wide;
               })()"""
        )
        assert too_wide == []
        assert tab.errors == []


async def _ground(tab: Tab) -> str:
    return str(await tab.run("getComputedStyle(document.body).backgroundColor"))


def _fill(form: str, **values: str) -> str:
    """A script that fills in a form and sends it, as a user would."""
    fields = "".join(f"form.elements[{json.dumps(name)}].value = {json.dumps(text)};" for name, text in values.items())
    return f"(() => {{ const form = document.getElementById('{form}'); {fields} form.requestSubmit(); }})()"
