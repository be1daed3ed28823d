"""The console below a path of a proxy, with a platform that is in another time zone than the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Tab, open_tab
from console_build import build_console
from playwright.sync_api import Browser, expect

from migrated import PASSWORD
from nginx_server import nginx
from running import Platform
from support import free_port

_LOCATION = """
server {{
    listen 127.0.0.1:{port};
    location /plant/one/ {{
        proxy_pass http://127.0.0.1:{behind}/;
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection "upgrade";
    }}
}}
"""
"""A prefix that nginx takes away: the platform doesn't know of it."""


@pytest.fixture
def tab(tmp_path: Path, browser: Browser) -> Iterator[Tab]:
    """A tab whose browser is in New York, at the proxy; nothing may be asked for beside the prefix."""
    build_console()
    port = free_port()
    with Platform(tmp_path / "data", env={"TERRAZZO_TIME__ZONE": "Asia/Kolkata"}) as platform:
        location = _LOCATION.format(port=port, behind=platform.http)
        with nginx(tmp_path / "nginx", http=location, ports=(port,)):
            base = f"http://127.0.0.1:{port}/plant/one"
            opened = open_tab(browser, base, timezone_id="America/New_York")
            opened.open()
            yield opened
            complaints = opened.complaints()
            opened.page.context.close()
            assert complaints == []


def test_it_works_below_a_path_and_shows_the_platforms_time(tab: Tab) -> None:
    tab.login("admin", PASSWORD)
    head = tab.page.get_by_role("banner")
    expect(head).to_contain_text("live")
    expect(head).to_contain_text(re.compile(r"Asia/Kolkata\s+UTC\+05:30"))
    tab.page.reload()
    expect(head).to_contain_text("live")  # the session's cookie is good below the prefix, too
    tab.open("#/audit")
    tab.settle()
    now = tab.run(
        "new Intl.DateTimeFormat('en-CA', {timeZone: 'Asia/Kolkata', month: '2-digit', day: '2-digit'})"
        ".format(new Date())"
    )
    expect(tab.page.get_by_role("row").filter(has_text="login").first).to_contain_text(now)
    assert all("/plant/one/" in url for url in tab.asked if url.startswith(("http", "ws")))
