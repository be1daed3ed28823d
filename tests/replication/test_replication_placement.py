"""Each operation has one place where it is answered when there are several nodes; what changes something is refused."""

from __future__ import annotations

import re

import pytest

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.replica.placement import LEADERS_FILES, OF_LEADER, OWN, changes_something
from terrazzo.api.kernel.replica.position import ReadPosition
from terrazzo.api.operations.bulk import BULK
from terrazzo.api.operations.files import DOWNLOAD
from terrazzo.api.operations.history.export import EXPORTS
from terrazzo.api.operations.influx.query import INFLUX_QUERY
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS

ALL: tuple[Operation, ...] = (
    *(*TABLE, *PATHS, *EXPORTS, INFLUX_QUERY, DOWNLOAD),
    *(each.export() for each in BULK),
)
_READS = re.compile(r"^(get_|export_|search$|ping$|check_|statos_|.*/get|influx_query$|statistics/)")
_EFFECTS = {"login", "logout", "subscribe", "unsubscribe"}
"""What a replica does that is no read: tokens are in the database that all nodes have, subscriptions on itself."""


def test_no_name_is_in_two_places_or_in_none() -> None:
    assert not (OWN & OF_LEADER)
    assert not (LEADERS_FILES & (OWN | OF_LEADER))
    assert {operation.name for operation in ALL} >= OWN | OF_LEADER | LEADERS_FILES


def test_what_a_replica_answers_are_reads_and_all_reads_have_a_place() -> None:
    reads = {operation.name for operation in ALL if _READS.match(operation.name)}
    assert reads >= (OWN | OF_LEADER) - _EFFECTS
    assert {operation.name for operation in ALL if operation.only_reads} - LEADERS_FILES <= OWN | OF_LEADER
    refused = {operation.name for operation in ALL if changes_something(operation)}
    assert not reads & refused
    assert {"create_terminal", "publish_terminal_command", "import_terminals", "reset_password"} <= refused


@pytest.mark.parametrize("text", ["", "1", "1.", ".1", "-1.2", "1.2.3", "1.2x", "١.٢", "1" * 19 + ".1", "9" * 100_000])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected what an answer"):
        ReadPosition.parse(text)


def test_a_position_comes_back() -> None:
    assert ReadPosition.parse(str(ReadPosition(12, 7))) == (12, 7)
    assert ReadPosition.parse(" 0.0 ") == (0, 0)
