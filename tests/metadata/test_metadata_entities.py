"""Creating, changing, deleting and finding records, as every entity does it."""

from __future__ import annotations

import pytest
from registry_stand import ROOT, Stand, terminal_values

from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter, Conflict, NotFound, NotPermitted
from terrazzo.metadata.definitions.registry import ENTITIES


async def test_created_record_is_read_back_whole(stand: Stand) -> None:
    values = {
        "name": "Boiler set",
        "description": "Größe 3 \U0001f525",
        "hardware": "rev C",
        "mcu_version": "1.2.3",
        "terminal_script": '{"points": [1, 2.5, null]}',
        "config_script": [{"a": True}],
        "reference": "R-1",
        "is_available": 0,
    }
    created = await stand.entities.configurations.create(stand.first, values)
    found = await stand.entities.configurations.item(stand.first, created["uid"])
    assert found == created
    assert found["terminal_script"] == {"points": [1, 2.5, None]}
    assert found["config_script"] == [{"a": True}]
    assert found["description"] == "Größe 3 \U0001f525"
    assert (found["created_by"], found["last_modified_by"]) == (stand.first.user_id, stand.first.user_id)
    assert found["permission_company_id"] == stand.first.company_id
    assert found["created"] == found["last_modified"] > 1_700_000_000_000_000
    assert found["lua_file"] == ""


async def test_update_changes_what_is_given_and_nothing_else(stand: Stand) -> None:
    before = await stand.terminal("G1", description="old", keep_alive=60)
    after = await stand.entities.terminals.update(stand.first, "G1", {"description": "new", "last_modified_by": 77})
    assert after["description"] == "new"
    assert after["last_modified_by"] == 77
    assert after["last_modified"] > before["last_modified"]
    changed = {"description", "last_modified_by", "last_modified"}
    assert {k: v for k, v in after.items() if k not in changed} == {k: v for k, v in before.items() if k not in changed}


async def test_record_sent_back_as_it_was_read_is_accepted(stand: Stand) -> None:
    before = await stand.terminal("G1")
    sent = {name: value for name, value in before.items() if name != "config_uid"}
    after = await stand.entities.terminals.update(stand.first, before["id"], sent)
    assert {**after, "last_modified": 0} == {**before, "last_modified": 0}


async def test_key_is_id_or_uid_and_uid_wins(stand: Stand) -> None:
    plain = await stand.terminal("G1")
    tricky = await stand.terminal(str(plain["id"]))
    item = stand.entities.terminals.item
    assert (await item(stand.first, plain["id"]))["uid"] == "G1"
    assert (await item(stand.first, "G1"))["uid"] == "G1"
    assert (await item(stand.first, str(plain["id"])))["id"] == tricky["id"]
    assert (await item(stand.first, str(tricky["id"])))["id"] == tricky["id"]


async def test_unknown_keys_are_not_found(stand: Stand) -> None:
    keys = (0, -1, 2**63, 2**200, "", "nothing", "9" * 18, "9" * 400, "a\0b", "\ud800", "١٢")
    for repository in (stand.entities.terminals, stand.entities.objects, stand.entities.users):
        for key in keys:
            with pytest.raises(NotFound):
                assert await repository.item(stand.first, key) is None, f"{key!r} was found"


async def test_deleted_record_is_returned_and_gone(stand: Stand) -> None:
    created = await stand.terminal("G1")
    assert await stand.entities.terminals.delete(stand.first, "G1") == created
    with pytest.raises(NotFound):
        await stand.entities.terminals.item(stand.first, "G1")
    again = await stand.terminal("G1")
    assert again["id"] > created["id"], "an id must never be used twice"


async def test_uid_is_taken_only_once_over_all_companies(stand: Stand) -> None:
    await stand.terminal("G1")
    for actor in (stand.first, stand.second):
        with pytest.raises(Conflict, match="uid: G1 is taken"):
            await stand.terminal("G1", actor)


async def test_uid_and_company_stay_for_good(stand: Stand) -> None:
    await stand.terminal("G1")
    with pytest.raises(BadParameter, match="uid: is G1 for good"):
        await stand.entities.terminals.update(ROOT, "G1", {"uid": "G2"})
    with pytest.raises(BadParameter, match="permission_company_id"):
        await stand.entities.terminals.update(ROOT, "G1", {"permission_company_id": stand.second.company_id})


async def test_generated_uids_never_read_as_numbers(stand: Stand) -> None:
    uids = {(await stand.entities.controls.create(stand.first, {"name": "c", "script": []}))["uid"] for _ in range(20)}
    assert len(uids) == 20
    assert all(len(uid) == 12 and not uid.isdigit() for uid in uids)


async def test_object_uid_is_its_id(stand: Stand) -> None:
    created = await stand.entities.objects.create(stand.first, {"name": "Boiler"})
    assert created["uid"] == str(created["id"])


async def test_companies_are_blind_to_each_other(stand: Stand) -> None:
    await stand.terminal("G1", stand.first)
    await stand.terminal("G2", stand.second)
    repository = stand.entities.terminals
    for call in (
        lambda: repository.item(stand.second, "G1"),
        lambda: repository.update(stand.second, "G1", {"name": "mine"}),
        lambda: repository.delete(stand.second, "G1"),
    ):
        with pytest.raises(NotFound):
            await call()
    assert [row["uid"] for row in (await repository.page(stand.second)).rows] == ["G2"]
    assert (await repository.page(stand.second)).total == 1
    assert (await repository.page(ROOT)).total == 2
    assert (await repository.item(ROOT, "G1"))["name"] == "Terminal G1"


async def test_only_a_super_user_makes_records_of_another_company(stand: Stand) -> None:
    other = stand.second.company_id
    with pytest.raises(NotPermitted):
        await stand.entities.controls.create(stand.first, {"name": "c", "script": [], "permission_company_id": other})
    made = await stand.entities.controls.create(ROOT, {"name": "c", "script": [], "permission_company_id": str(other)})
    assert made["permission_company_id"] == other
    with pytest.raises(BadParameter, match="no company 999"):
        await stand.entities.controls.create(ROOT, {"name": "c", "script": [], "permission_company_id": 999})


async def test_references_stay_within_the_company(stand: Stand) -> None:
    with pytest.raises(BadParameter, match="config_id: no configuration"):
        await stand.terminal("G1", stand.first, config_id=stand.other_config)
    with pytest.raises(BadParameter, match="config_id: no configuration"):
        await stand.terminal("G1", ROOT, config_id=stand.config, permission_company_id=stand.second.company_id)


async def test_reference_is_given_as_uid_or_id_and_shown_as_both(stand: Stand) -> None:
    config = await stand.entities.configurations.item(stand.first, stand.config)
    for number, key in enumerate((config["id"], str(config["id"]), config["uid"])):
        row = await stand.terminal(f"G{number}", config_id=key)
        assert (row["config_id"], row["config_uid"]) == (config["id"], config["uid"])


async def test_record_in_use_is_not_deleted(stand: Stand) -> None:
    for number in range(5):
        await stand.terminal(f"G{number}")
    with pytest.raises(Conflict, match=r"configuration \w+ is in use by terminal G0, G1, G2 and 2 more"):
        await stand.entities.configurations.delete(stand.first, stand.config)
    mapping = await stand.entities.mappings.create(stand.first, {"name": "m", "script": []})
    await stand.entities.objects.create(
        stand.first, {"name": "o", "mapping_id": mapping["uid"], "terminal_list": ["G3", "G1"]}
    )
    with pytest.raises(Conflict, match="in use by object 1"):
        await stand.entities.mappings.delete(stand.first, mapping["id"])
    with pytest.raises(Conflict, match="terminal G3 is in use by object 1"):
        await stand.entities.terminals.delete(stand.first, "G3")
    with pytest.raises(Conflict, match=r"company .* is in use by user"):
        await stand.entities.companies.delete(ROOT, stand.first.company_id)
    await stand.entities.objects.delete(stand.first, 1)
    await stand.entities.terminals.delete(stand.first, "G3")
    await stand.entities.mappings.delete(stand.first, mapping["uid"])


async def test_only_a_super_user_changes_companies(stand: Stand) -> None:
    companies = stand.entities.companies
    own = stand.first.company_id
    assert [row["id"] for row in (await companies.page(stand.first)).rows] == [own]
    for call in (
        lambda: companies.create(stand.first, {"name": "three"}),
        lambda: companies.update(stand.first, own, {"name": "renamed"}),
        lambda: companies.delete(stand.first, own),
    ):
        with pytest.raises(NotPermitted):
            await call()
    assert (await companies.update(ROOT, own, {"name": "renamed"}))["name"] == "renamed"


async def test_hidden_columns_never_leave(stand: Stand) -> None:
    users = stand.entities.users
    rows = [
        await users.item(stand.first, stand.first.user_id),
        *(await users.page(ROOT)).rows,
        await users.update(stand.first, stand.first.user_id, {"email": "a@b.c"}),
    ]
    for row in rows:
        assert not {"password_hash", "token_epoch", "password"} & set(row)
    for name in ("password_hash", "token_epoch"):
        with pytest.raises(BadParameter, match=f"{name}: no such field"):
            await users.update(stand.first, stand.first.user_id, {name: 1})


async def test_user_without_super_rights_makes_no_super_user(stand: Stand) -> None:
    users = stand.entities.users
    chief = await users.create(ROOT, {"username": "chief", "password": "a long password", "is_super": 1})
    values = {"username": "x", "password": "a long password", "is_super": 1}
    company_admin = Actor(user_id=9, username="a", company_id=chief["permission_company_id"], role=Role.ADMIN)
    for call in (
        lambda: users.create(stand.first, values),
        lambda: users.update(stand.first, stand.first.user_id, {"is_super": 1}),
        lambda: users.update(company_admin, "chief", {"password": "taken over!"}),
        lambda: users.delete(company_admin, "chief"),
    ):
        with pytest.raises(NotPermitted):
            await call()


async def test_last_active_super_user_stays(stand: Stand) -> None:
    users = stand.entities.users
    await users.create(ROOT, {"username": "chief", "password": "a long password", "is_super": 1})
    for call in (
        lambda: users.delete(ROOT, "chief"),
        lambda: users.update(ROOT, "chief", {"is_active": 0}),
        lambda: users.update(ROOT, "chief", {"is_super": 0}),
    ):
        with pytest.raises(Conflict, match="last active super user"):
            await call()
    await users.create(ROOT, {"username": "deputy", "password": "a long password", "is_super": 1})
    await users.delete(ROOT, "chief")


async def test_every_definition_has_what_the_repository_relies_on() -> None:
    names = {entity.name for entity in ENTITIES}
    for entity in ENTITIES:
        assert entity.uid_name in entity.table.c
        assert entity.company in entity.table.c
        assert {field.references for field in entity.references} <= names
        assert all(field.name.endswith("_id") for field in entity.references)


async def test_same_uid_from_many_tasks_at_once_is_made_once(stand: Stand) -> None:
    import asyncio

    results = await asyncio.gather(*(stand.terminal("G1") for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(result, Conflict) for result in results) == 7
    assert (await stand.entities.terminals.page(stand.first)).total == 1


async def test_terminal_values_are_enough(stand: Stand) -> None:
    for name in terminal_values("G1", config_id=stand.config):
        values = terminal_values("G1", config_id=stand.config)
        del values[name]
        if name == "access":
            assert (await stand.entities.terminals.create(stand.first, values))["access"] == "all"
            continue
        with pytest.raises(BadParameter, match=f"{name}: is required"):
            await stand.entities.terminals.create(stand.first, values)
