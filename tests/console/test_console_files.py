"""What is served at ``/``: files by hash, the policy, and no word of the session to anybody."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from console_build import CONSOLE, build_console

from api.api_rig import Rig, open_rig
from terrazzo.api.transports.console import files as console_files
from terrazzo.api.transports.console.files import NOT_BUILT, POLICY, policy_with

WANTED = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'; report-uri "
)


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    build_console()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        yield opened


async def test_the_page_and_its_files(rig: Rig) -> None:
    async with rig.http.get("/") as response:
        page = await response.text()
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["Content-Security-Policy"].startswith(WANTED)
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(named) >= 3
    assert all(re.fullmatch(r"console/[\w-]+-[0-9A-Za-z]{8}\.(js|css|svg)", name) for name in named), named
    for name in named:
        async with rig.http.get(f"/{name}", headers={"Accept-Encoding": "gzip"}) as response:
            assert response.status == 200
            assert "immutable" in response.headers["Cache-Control"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            etag = response.headers["ETag"]
        async with rig.http.get(f"/{name}", headers={"If-None-Match": etag}) as response:
            assert response.status == 304


async def test_who_has_no_session_gets_a_login_to_type_in_at_once(rig: Rig) -> None:
    async def asked(**headers: str) -> str:
        async with rig.http.get("/", headers=headers) as response:
            assert "Cookie" in response.headers["Vary"]
            return await response.text()

    assert '<input name="username"' in await asked()
    assert "User name" in await asked(**{"Accept-Language": "de, en"})
    assert "用户名" in await asked(**{"Accept-Language": "zh-CN, en"})
    assert "<input" not in await asked(Cookie="terrazzo-0123=e.y.j")


async def test_nothing_else_is_served(rig: Rig) -> None:
    for path in ("/console/built.sha256", "/console/../files.py", "/console/%2e%2e/files.py", "/console/none.js"):
        async with rig.http.get(path) as response:
            assert response.status == 404, path


async def test_a_platform_without_a_console_says_how_to_get_one(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_files, "_built", lambda: Path("/nowhere"))
    async with rig.http.get("/") as response:
        assert (response.status, await response.text()) == (404, NOT_BUILT)


async def test_reports_of_the_policy_are_counted_and_bounded(rig: Rig) -> None:
    report = {"csp-report": {"effective-directive": "script-src", "blocked-uri": "https://evil.example/\n" * 50}}
    bodies = [json.dumps(report).encode(), b"x", b"[" * 5_000, b'{"csp-report": {"effective-directive": "made-up"}}']
    for body in bodies:
        async with rig.http.post("/console/policy-reports", data=body) as response:
            assert response.status == 204
    async with rig.http.post("/console/policy-reports", data=b" " * 9_000) as response:
        assert response.status == 413
    async with rig.http.get("/metrics") as response:
        text = await response.text()
    counts = dict(re.findall(r'terrazzo_console_policy_reports_total\{directive="([\w-]+)"\} (\d+)', text))
    assert (counts["script-src"], counts["other"], "made-up" in counts) == ("1", "3", False)


def test_the_policy_names_no_other_host() -> None:
    assert "http" not in POLICY
    assert "unsafe" not in POLICY


def test_the_lock_file_names_no_addresses() -> None:
    text = (CONSOLE / "package-lock.json").read_text()
    assert "://" not in text
    assert '"resolved"' not in text


def test_a_map_s_pictures_are_all_that_the_configuration_adds() -> None:
    assert policy_with("") == POLICY
    added = policy_with("https://tiles.example:8443/base/{z}/{x}/{y}.png?key=1")
    assert added == POLICY.replace("data: blob:; media", "data: blob: https://tiles.example:8443; media")
    assert added.count("tiles.example") == 1


def test_each_place_where_nothing_is_says_what_to_do() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in CONSOLE.glob("*/*.tsx")}
    silent = [file.name for file, text in sources.items() if re.search(r"<Empty title=\{[^>\n]*\} />", text)]
    assert sum(text.count("<Empty ") for text in sources.values()) > 30
    assert silent == []
