"""A configuration held against what a terminal reports."""

from __future__ import annotations

import hashlib
import json

from terrazzo.configurations.comparison import MOST_DIFFERENCES, WantedConfiguration, differences

CONFIG = {"b": {"high": 80, "on": True, "name": "Kühlung"}, "a": 1.5}


def test_the_version_is_that_of_the_canonical_json() -> None:
    text = json.dumps(CONFIG, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    wanted = WantedConfiguration.of(CONFIG)
    assert wanted.version == hashlib.sha256(text.encode()).hexdigest()
    assert wanted.version == WantedConfiguration.of(dict(reversed(CONFIG.items()))).version
    assert json.loads(wanted.command) == {"Act": "Config", "Version": wanted.version, "Config": CONFIG}


def test_a_report_with_all_that_is_wanted_confirms_whatever_else_is_in_it() -> None:
    wanted = WantedConfiguration.of(CONFIG)
    points = {"a": 1.5, "b.high": 80.0, "b.on": True, "b.name": "Kühlung", "Time": 1, "more": 2}
    assert differences(wanted, points) == []
    assert differences(wanted, {**points, "Version": wanted.version}) == []


def test_what_differs_is_named_with_both_values() -> None:
    wanted = WantedConfiguration.of(CONFIG)
    found = differences(wanted, {"a": "1.5", "b.high": 81, "b.on": 1, "Version": "old"})
    assert [(each.key, each.wanted, each.reported) for each in found] == [
        ("b.high", 80, 81),
        ("b.on", True, 1),
        ("b.name", "Kühlung", None),
        ("a", 1.5, "1.5"),
        ("Version", wanted.version, "old"),
    ]


def test_only_the_version_tells_of_arrays() -> None:
    for config in ({"a": [1]}, [1, 2], {"a": {"b": [{"c": 1}]}}):
        wanted = WantedConfiguration.of(config)
        assert [each.key for each in differences(wanted, {})] == ["Version"]
        assert differences(wanted, {"Version": wanted.version}) == []


def test_differences_are_bounded() -> None:
    wanted = WantedConfiguration.of({f"k{number}": "x" * 10_000 for number in range(1_000)})
    found = differences(wanted, {f"k{number}": "y" * 10_000 for number in range(1_000)})
    assert len(found) == MOST_DIFFERENCES
    assert max(len(each.reported) + len(each.wanted) for each in found) <= 400


def test_objects_deeper_than_a_report_may_have_them_are_told_of_by_the_version() -> None:
    config: dict[str, object] = {"leaf": 1}
    for _ in range(60):
        config = {"a": config}
    wanted = WantedConfiguration.of(config)
    assert (wanted.leaves, wanted.has_arrays) == ({}, True)
