"""Grafana's dashboards: each query answered by a real Prometheus that has scraped a real platform."""

from __future__ import annotations

import json
import runpy
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from running import Platform, ServerProcess, answers, wait_for
from support import free_port, require_program

FOLDER = Path(__file__).parents[2] / "packaging" / "grafana"
FILES = sorted(FOLDER.glob("*.json"))

EMPTY = {"Dropped"}
"""Panels that find nothing before something of the kind has happened; tests/compatibility has their metrics."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one that has scraped a platform some times."""
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    program = require_program("prometheus")
    with Platform(folder / "data") as platform:
        job = {"job_name": "terrazzo", "static_configs": [{"targets": [platform.url.removeprefix("http://")]}]}
        (folder / "prometheus.json").write_text(
            json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]})  # which is YAML too
        )
        command = [program, f"--config.file={folder}/prometheus.json", f"--storage.tsdb.path={folder}/tsdb"]
        with ServerProcess([*command, f"--web.listen-address=127.0.0.1:{port}"], log=folder / "log") as server:
            url = f"http://127.0.0.1:{port}"
            server.wait_ready(lambda: answers(f"{url}/-/ready"))
            platform.login()
            assert not answers(f"{platform.url}/nowhere")
            wait_for(lambda: len(ask(url, "count_over_time(terrazzo_build_info[1m]) >= 3")) == 1, "three scrapes")
            yield url


def ask(url: str, query: str) -> list[Any]:
    """What Prometheus finds now."""
    with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=10) as answer:
        found = json.load(answer)
    assert found["status"] == "success"
    return list(found["data"]["result"])


def targets(file: Path) -> list[tuple[str, str, str]]:
    """Of each query: the panel, the legend, the expression as Grafana sends it."""
    return [
        (
            panel["title"],
            target["legendFormat"],
            target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*"),
        )
        for panel in json.loads(file.read_text())["panels"]
        for target in panel["targets"]
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_query_finds_something(prometheus: str, file: Path) -> None:
    nothing = [
        (panel, legend) for panel, legend, query in targets(file) if not ask(prometheus, query) and panel not in EMPTY
    ]
    assert nothing == []


def test_the_files_are_those_that_are_made(tmp_path: Path) -> None:
    runpy.run_path(str(FOLDER / "make.py"))["main"](tmp_path)
    assert {file.name: file.read_text() for file in FILES} == {
        file.name: file.read_text() for file in tmp_path.glob("*.json")
    }
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_panels_stand_beside_one_another(file: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(file.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells)
        taken |= cells
