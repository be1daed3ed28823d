"""JSON about as deep as the decoder goes: what reads on in it must not need more of the stack than is left."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from terrazzo.api.kernel.conditions import Comparisons, Memberships, Order
from terrazzo.api.kernel.fields import Json, KeyList, Names, Parsed, decode_hook
from terrazzo.api.operations.messenger_fields import Email, Recipients
from terrazzo.api.operations.pusher import Publishes
from terrazzo.database.field import JSON_DEPTH, Field
from terrazzo.errors import BadParameter
from terrazzo.metadata.definitions.registry import CAMPAIGN, DASHBOARD, MAPPING, OBJECT, STATISTICS
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.times import UTC

_DEPTHS = (*range(1, 80, 3), 64, 65, *range(860, 1_010))
_read = decode_hook(UTC)


def deep(depth: int) -> list[str]:
    """Lists and objects within each other, and lists that begin as conditions, orders and rows do."""
    lists = "[" * depth + "]" * depth
    return [lists, '{"a":' * depth + "1" + "}" * depth, f'["a", {lists}]', f'[["a", "=", {lists}]]', f"[{lists}, 1]"]


@pytest.mark.parametrize("kind", [Comparisons, Memberships, Order, Json, KeyList, Names, Recipients, Email, Publishes])
def test_fields_of_requests(kind: type[Parsed]) -> None:
    for depth in _DEPTHS:
        for text in deep(depth):
            given: list[Any] = [text]
            try:
                given.append(msgspec.json.decode(text))
            except RecursionError:
                assert depth > JSON_DEPTH
            for each in given:
                try:
                    _read(kind, each)
                except ValueError:
                    continue
                assert depth <= JSON_DEPTH or each is text  # which may be one name


@pytest.mark.parametrize(
    "field",
    [
        OBJECT.fields["addition"],
        OBJECT.fields["terminal_list"],
        MAPPING.fields["script"],
        STATISTICS.fields["script"],
        DASHBOARD.fields["script"],
        CAMPAIGN.fields["waves"],
        RULE.fields["kinds"],
    ],
    ids=lambda field: field.name,
)
def test_columns_of_records(field: Field) -> None:
    for depth in _DEPTHS:
        for text in deep(depth):
            try:
                field.parse(text)
            except BadParameter:
                continue
            assert depth <= JSON_DEPTH or text.startswith("{")  # may be one name
