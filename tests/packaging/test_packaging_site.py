"""The documents as a site: built without a warning or a dead link, and nothing in it loaded from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr  # not --quiet: that hides warnings from --strict
    assert "WARNING" not in done.stderr
    return folder


def test_each_document_is_a_page(site: Path) -> None:
    pages = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    documents = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert documents | {".", "measurements", "changelog"} == pages
    assert (site / "search" / "search_index.json").stat().st_size > 100_000


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r'<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"[^>]*>'
    )
    foreign = {
        (path.name, "".join(found))
        for path in site.rglob("*.html")
        for found in loads.findall(path.read_text(encoding="utf-8"))
        if "//" in "".join(found)
    }
    assert foreign == set()
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert not [text for text in styles if re.search(r"@import|url\(['\"]?(https?:)?//", text)]


def test_links_out_of_the_site_are_paths(site: Path) -> None:
    text = (site / "monitoring" / "index.html").read_text(encoding="utf-8")
    assert "<code>packaging/prometheus/alerts.yml</code>" in text
    assert 'href="../runbook/"' in text


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    """The check itself: a site with one is not built."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[there is none](none.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nstrict: true\nplugins: []\n")
    command = [sys.executable, "-m", "mkdocs", "build"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "none.md" in done.stdout + done.stderr
