"""A map's pictures come from the server that the configuration names, and from no other."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import open_tab
from console_build import build_console
from playwright.sync_api import Browser, expect

from migrated import PASSWORD
from running import Platform, wait_for

_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
"""One pixel [PNG]."""
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


class _Tiles(BaseHTTPRequestHandler):
    """Any address is a picture; what is asked for is noted in the server's ``asked``."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Referer")))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(_PICTURE)))
        self.end_headers()
        self.wfile.write(_PICTURE)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def tiles() -> Iterator[ThreadingHTTPServer]:
    """A server of pictures on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Tiles) as server:
        server.asked = []  # type: ignore[attr-defined]
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def test_a_map_has_the_pictures_of_the_server_that_is_configured(
    tiles: ThreadingHTTPServer, browser: Browser, tmp_path: Path
) -> None:
    build_console()
    base = f"http://127.0.0.1:{tiles.server_address[1]}"
    environment = {"TERRAZZO_HTTP__MAP_TILES": f"{base}/base/{{z}}/{{x}}/{{y}}.png"}
    environment["TERRAZZO_HTTP__MAP_ATTRIBUTION"] = "Pictures of <b>Example</b>"
    with Platform(tmp_path / "data", env=environment) as platform:
        platform.login()
        mapping = platform.call("create_mapping", name="m", script=[], **BY)["uid"]
        place = {"gis": "31.2990,120.5853", "terminal_list": [], "mapping_id": mapping}
        platform.call("create_object", name="Plant", **place, **BY)
        tab = open_tab(browser, platform.url)
        tab.open()
        tab.login("admin", PASSWORD)
        tab.open("#/objects?view=map")
        expect(tab.page.locator(".map-source")).to_have_text("Pictures of <b>Example</b>")
        wait_for(lambda: tab.run(_LOADED), "pictures", timeout_s=60)
        expect(tab.page.get_by_role("button", name="Plant")).to_be_visible()
        asked = tiles.asked  # type: ignore[attr-defined]
        assert {referrer for _path, referrer in asked} == {None}
        assert all(path.startswith("/base/7/") for path, _referrer in asked)
        foreign = {url for url in tab.asked if not url.startswith((platform.url, "data:", "blob:", base))}
        assert (foreign, tab.said) == (set(), [])
        tab.page.context.close()


_LOADED = """
(() => {
  const tiles = [...document.querySelectorAll("img.tile")];
  return tiles.length > 3 && tiles.every((each) => each.naturalWidth > 0);
})()
"""
