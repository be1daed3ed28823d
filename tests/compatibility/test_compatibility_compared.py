"""The comparison of snapshots reports what differs, by name."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from compared import HOW_TO_UPDATE, differences, report
from visible import kept
from visible_python import describe
from visible_server import bare, metrics


def changed(kind: str) -> tuple[Any, Any]:
    before = kept(kind)
    return before, copy.deepcopy(before)


def test_nothing_differs_from_itself() -> None:
    for kind in ("actions", "paths", "openapi", "metrics", "configuration", "command_line", "loggers", "python"):
        assert report(kind, *changed(kind)) == ""


def test_a_removed_action_is_named() -> None:
    before, after = changed("actions")
    del after["get_last_grid"]
    said = report("actions", before, after)
    assert "- get_last_grid › role: 'viewer'" in said
    assert HOW_TO_UPDATE in said
    assert all(line.startswith("- get_last_grid ›") for line in differences(before, after))


def test_a_new_required_field_is_named() -> None:
    before, after = changed("actions")
    after["ping"]["fields"]["reason"] = {"type": "string", "required": True}
    assert differences(before, after) == [
        "+ ping › fields › reason › required: True",
        "+ ping › fields › reason › type: 'string'",
    ]


def test_a_field_that_becomes_required_is_named() -> None:
    before, after = changed("actions")
    after["ping"]["fields"]["message"]["required"] = True
    assert differences(before, after) == ["~ ping › fields › message › required: False -> True"]


def test_a_changed_permission_is_named() -> None:
    before, after = changed("actions")
    after["ping"]["role"] = None
    assert differences(before, after) == ["~ ping › role: 'viewer' -> None"]


def test_a_changed_default_is_named() -> None:
    before, after = changed("configuration")
    after["http.port"]["default"] = 8080
    assert differences(before, after) == ["~ http.port › default: 31507 -> 8080"]


def test_a_removed_path_is_named() -> None:
    before, after = changed("paths")
    del after["POST /object/api/v1/object/add"]
    assert differences(before, after)
    assert all(line.startswith("- POST /object/api/v1/object/add ›") for line in differences(before, after))


def test_a_renamed_logger_and_a_lost_label_are_named() -> None:
    assert differences(["terrazzo.ingest"], ["terrazzo.intake"]) == ["~ : ['terrazzo.ingest'] -> ['terrazzo.intake']"]
    one = metrics('# TYPE x_total counter\nx_total{port="1"} 1\n')
    other = metrics("# TYPE x_total counter\nx_total 1\n")
    assert differences(one, other) == ["~ x › samples › x_total: ['port'] -> []"]


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, 1.0)])
def test_kinds_of_values_count(one: Any, other: Any) -> None:
    assert differences({"a": one}, {"a": other})


def test_fields_that_are_called_like_texts_stay() -> None:
    schema = {"description": "for people", "properties": {"description": {"type": "string", "description": "too"}}}
    assert bare(schema) == {"properties": {"description": {"type": "string"}}}


def test_a_changed_signature_is_seen() -> None:
    def one(a: int, *, b: int = 1) -> None: ...

    def other(a: int, *, b: int = 2) -> None: ...

    assert describe(one) != describe(other)
