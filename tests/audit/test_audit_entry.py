"""What goes into the audit log of a change: what changed, no secrets, and never more than fits."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.audit.entry import MASK, MAX_ENTRY_BYTES, encode_values, entry_of
from terrazzo.database.entity import Entity
from terrazzo.database.field import FieldKind
from terrazzo.domain.actor import Actor, Role
from terrazzo.metadata.definitions.registry import ENTITIES, MAPPING, TERMINAL, USER

ACTOR = Actor(user_id=7, username="bo", company_id=3, role=Role.ADMIN, address="10.0.0.1")
SECRET_NAMES = re.compile(r"secret|pin\b|password|token|private|hash|credential", re.IGNORECASE)


def row(entity: Entity, **values: Any) -> dict[str, Any]:
    empty = {field.name: field.default for field in entity.fields.values()}
    return {"id": 1, **empty, entity.company: 3, entity.uid_name: "u1", **values}


def test_only_what_changed_is_told() -> None:
    before = row(TERMINAL, name="a", access="all", config_id=1, config_uid="c1", created=5, last_modified=5)
    after = before | {"name": "b", "config_id": 2, "config_uid": "c2", "last_modified": 9, "last_modified_by": 7}
    entry = entry_of(ACTOR, TERMINAL, before, after)
    assert entry is not None
    assert (entry.action, entry.entity, entry.record_id, entry.uid, entry.company_id) == (
        "update",
        "terminal",
        1,
        "u1",
        3,
    )
    assert entry.before == {"name": "a", "config_id": "c1"}
    assert entry.after == {"name": "b", "config_id": "c2"}
    assert entry_of(ACTOR, TERMINAL, before, before | {"last_modified": 9}) is None


def test_creation_and_deletion_have_one_side() -> None:
    made = row(MAPPING, name="m", script=[["A"] * 6])
    created, deleted = entry_of(ACTOR, MAPPING, None, made), entry_of(ACTOR, MAPPING, made, None)
    assert created is not None
    assert deleted is not None
    assert (created.action, created.before, deleted.action, deleted.after) == ("create", None, "delete", None)
    assert created.after == deleted.before
    assert created.after is not None
    assert created.after["script"] == [["A"] * 6]


def test_a_field_that_was_emptied_or_filled_is_on_one_side() -> None:
    full, empty = row(TERMINAL, maker="M"), row(TERMINAL, maker="")
    emptied = entry_of(ACTOR, TERMINAL, full, empty)
    assert emptied is not None
    assert (emptied.before, emptied.after) == ({"maker": "M"}, None)


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.name)
def test_no_secret_of_any_entity_is_told(entity: Entity) -> None:
    before, after = row(entity), row(entity)
    secrets = [
        field
        for field in entity.fields.values()
        if field.kind is FieldKind.SECRET or field.internal or SECRET_NAMES.search(field.name)
    ]
    for number, field in enumerate(secrets):
        before[field.name], after[field.name] = f"was-{number}", f"is-{number}"
    for sides in ((before, after), (None, after), (before, None)):
        entry = entry_of(ACTOR, entity, *sides)
        told = str(entry)
        assert "was-" not in told
        assert "is-" not in told
        if secrets:
            assert MASK in told


def test_a_changed_password_is_told_as_such() -> None:
    before = row(USER, password_hash="$argon2id$a", token_epoch=1)
    entry = entry_of(ACTOR, USER, before, before | {"password_hash": "$argon2id$b", "token_epoch": 2})
    assert entry is not None
    assert (entry.before, entry.after) == ({"password": MASK}, {"password": MASK})


JSON = st.recursive(st.text() | st.integers(-(2**63), 2**63) | st.none(), lambda inner: st.lists(inner), max_leaves=20)


@given(st.dictionaries(st.text(max_size=32), JSON, max_size=8))
def test_what_fits_is_told_as_it_is(values: dict[str, Any]) -> None:
    encoded = encode_values(values)
    assert encoded is not None
    assert msgspec.json.decode(encoded) == values


@pytest.mark.parametrize(
    "values",
    [
        {"script": [["é" * 50] * 7] * 2_000},
        {f"field_{number}": "x" * 4_000 for number in range(40)},
        {f"field_{number}": ["\x01\U0001f600"] * 9_999 for number in range(40)},
    ],
)
def test_what_does_not_fit_is_cut_and_says_so(values: dict[str, Any]) -> None:
    encoded = encode_values(values)
    assert encoded is not None
    assert len(encoded.encode()) <= MAX_ENTRY_BYTES
    told = msgspec.json.decode(encoded)
    assert set(told) == set(values)
    assert all(re.search(r"\.\.\. \(\d+ characters\)$", value) for value in told.values())
