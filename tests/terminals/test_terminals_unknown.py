"""Client ids that are no terminal's: counted by address, bounded, each seen by those whom they concern."""

from __future__ import annotations

import itertools

from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.terminals.unknown import MOST, MOST_OF_ADDRESS, MOST_OF_COMPANY, UnknownTerminals

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True)


def admin_of(company_id: int) -> Actor:
    return Actor(user_id=2, username="admin", company_id=company_id, role=Role.ADMIN)


def new_list() -> UnknownTerminals:
    counter = itertools.count(1_000)
    return UnknownTerminals(Registry(), clock=lambda: next(counter))


def test_a_flood_from_one_address_and_from_many_pushes_out_nobody_else() -> None:
    unknown = new_list()
    unknown.note("honest", "10.0.0.1")
    for number in range(3 * MOST):
        unknown.note(f"flood-{number}", f"2001:db8:0:{number % 1_000:x}::{number:x}")
    found = unknown.found(ROOT)
    assert "honest" in {each.uid for each in found}
    assert len(found) <= MOST
    assert sum(each.address.startswith("2001:db8:0:7::") for each in found) <= MOST_OF_ADDRESS


def test_a_claim_key_says_whose_it_is() -> None:
    unknown = new_list()
    unknown.note("t1", "10.0.0.1")
    unknown.note("t1", "10.0.0.2", 7)
    unknown.note("t2", "10.0.0.2", 8)
    assert [(each.uid, each.company_id) for each in unknown.found(admin_of(7))] == [("t1", 7)]
    assert [(each.uid, each.company_id) for each in unknown.found(admin_of(8))] == [("t2", 8)]
    assert unknown.found(admin_of(9)) == []
    assert unknown.found(admin_of(0)) == [], "no company has what nobody's key came with"
    assert len(unknown.found(ROOT)) == 3


def test_neither_strangers_nor_another_companys_key_push_out_what_came_with_a_key() -> None:
    unknown = new_list()
    unknown.note("ours", "10.0.0.1", 7)
    for number in range(2 * MOST):
        unknown.note(f"flood-{number}", f"10.{number % 200}.1.1")
        unknown.note(f"flood-{number}", f"10.{number % 200}.1.1", 8)
    assert [each.uid for each in unknown.found(admin_of(7))] == ["ours"]
    assert len(unknown.found(admin_of(8))) == MOST_OF_COMPANY


def test_long_client_ids_are_cut() -> None:
    unknown = new_list()
    unknown.note("x" * 65_535, "10.0.0.1")
    [seen] = unknown.found(ROOT)
    assert seen.uid == "x" * 64
