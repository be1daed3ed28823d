"""Every action has an example in docs/gateway.md, and each example works as printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_run import EXAMPLES, Rehearsal, with_tcp

from terrazzo.api.operations.table import TABLE


def test_every_action_has_an_example() -> None:
    assert [operation.name for operation in TABLE if operation.name not in EXAMPLES] == []
    for name, (request, answer) in EXAMPLES.items():
        assert request["action"] == name
        assert (answer["resp"], answer["code"]) == (name, 200)


@pytest.mark.usefixtures("each_database")
def test_each_example_works_as_printed(tmp_path: Path) -> None:
    with with_tcp(tmp_path / "data") as platform:
        rehearsal = Rehearsal(platform)
        try:
            for name, (request, answer) in EXAMPLES.items():
                got = rehearsal.perform(request)
                assert got["code"] == 200, (name, got)
                rehearsal.compare(answer, got, name)
        finally:
            rehearsal.close()


def test_a_difference_is_noticed() -> None:
    """The comparison itself: what may differ is the value of a time, a made-up uid or a token, not its form."""
    compare = Rehearsal.__new__(Rehearsal)
    compare._real = {}
    compare.compare({"created": "2026-01-01 00:00:00"}, {"created": "2027-01-01 00:00:00"})
    compare.compare({"uid": "0c0ffee00001"}, {"uid": "aaaaaaaaaaaa"})
    for documented, got in [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1}, {}),
        ([1], [1, 1]),
        ({"created": "2026-01-01 00:00:00"}, {"created": "2026-01-01T00:00:00+00:00"}),
        ({"uid": "0c0ffee00001"}, {"uid": "bbbbbbbbbbbb"}),
        ({"name": "Pump"}, {"name": "Pumps"}),
    ]:
        with pytest.raises(AssertionError):
            compare.compare(documented, got)
