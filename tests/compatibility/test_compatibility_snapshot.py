"""What clients, operators and programs hold on to is as it was; on purpose is said by an update of the snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from compared import report
from visible import OF_DOCUMENT, OF_PROGRAM, as_json, kept, with_influxdb
from visible_server import ask_platform
from visible_settings import configuration, is_read

from influx_server import InfluxServer


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a started platform says."""
    return ask_platform(tmp_path_factory.mktemp("asked") / "data")


def compare(kind: str, found: Any) -> None:
    said = report(kind, kept(kind), as_json(found))
    assert not said, said


@pytest.mark.parametrize("kind", OF_DOCUMENT)
def test_what_clients_see(kind: str, asked: tuple[dict[str, Any], dict[str, Any]]) -> None:
    compare(kind, OF_DOCUMENT[kind](asked[0]))


def test_metrics(asked: tuple[dict[str, Any], dict[str, Any]]) -> None:
    compare("metrics", asked[1])


def test_metrics_with_influxdb(tmp_path: Any, influxd: InfluxServer) -> None:
    compare("metrics_influxdb", ask_platform(tmp_path / "data", **with_influxdb(influxd.url))[1])


@pytest.mark.parametrize("kind", OF_PROGRAM)
def test_what_operators_and_programs_see(kind: str) -> None:
    compare(kind, OF_PROGRAM[kind]())


def test_each_key_has_its_variable() -> None:
    unread = [key for key, of in configuration().items() if not is_read(of["variable"])]
    assert not unread
    assert not is_read("TERRAZZO_HTTP__NO_SUCH_KEY")
