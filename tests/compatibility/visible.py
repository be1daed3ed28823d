"""Snapshots of what others hold on to, one file a kind.

``python tests/compatibility/visible.py --update`` writes them; it needs ``influxd``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it, where this is run as a program

from visible_python import python_names
from visible_server import actions, ask_platform, openapi, paths
from visible_settings import command_lines, configuration, loggers

from influx_server import InfluxServer

_SHORT = 60  # of a value on one line
FOLDER = Path(__file__).parent / "snapshot"
OF_DOCUMENT: dict[str, Callable[[dict[str, Any]], Any]] = {"actions": actions, "paths": paths, "openapi": openapi}
OF_PROGRAM: dict[str, Callable[[], Any]] = {
    "command_line": command_lines,
    "configuration": configuration,
    "loggers": loggers,
    "python": python_names,
}


def with_influxdb(url: str) -> dict[str, str]:
    """The environment of a platform whose time series are in an InfluxDB."""
    return {
        "TERRAZZO_STORE__KIND": "influxdb",
        "TERRAZZO_STORE__URL": url,
        "TERRAZZO_STORE__DATABASE": "compatibility",
    }


def kept(kind: str) -> Any:
    """The snapshot of a kind."""
    return json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))


def as_json(found: Any) -> Any:
    """As a snapshot has it after it was written and read."""
    return json.loads(json.dumps(found))


def _write(kind: str, found: Any) -> None:
    (FOLDER / f"{kind}.json").write_text(_laid_out(as_json(found)) + "\n", encoding="utf-8")


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON with sorted keys, on one line where that is short."""
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(line) <= _SHORT or not isinstance(value, dict | list):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_laid_out(each, inner)}" for name, each in sorted(value.items())]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _laid_out(each, inner) for each in value) + f"\n{indent}]"


def _update() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document, metrics = ask_platform(folder / "embedded")
        _write("metrics", metrics)
        for kind, of_document in OF_DOCUMENT.items():
            _write(kind, of_document(document))
        for kind, of_program in OF_PROGRAM.items():
            _write(kind, of_program())
        with InfluxServer(folder / "influxd") as server:
            _write("metrics_influxdb", ask_platform(folder / "remote", **with_influxdb(server.url))[1])


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        raise SystemExit("usage: python tests/compatibility/visible.py --update")
    _update()
