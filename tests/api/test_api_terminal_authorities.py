"""Authorities of terminals: named, listed and removed by administrators; bounded, each name one company's."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from api_rig import Rig
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from client_certificates import ClientCa
from terrazzo.database.entity import METADATA


async def listed(rig: Rig, who: str = "admin") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rig.call("get_terminal_authority_list", who))["data"]
    return found


async def test_an_authority_is_named_listed_and_removed(rig: Rig) -> None:
    ca = ClientCa("Acme")
    made = await rig.call("create_terminal_authority", name="Hall 2", certificate=f"Bag Attributes\n{ca.pem}\n")
    [record] = await listed(rig)
    assert (record["uid"], record["name"], record["subject"]) == (made["uid"], "Hall 2", "CN=Acme")
    assert record["certificate"] == ca.pem
    assert record["fingerprint"] == ca.certificate.fingerprint(hashes.SHA256()).hex()
    assert record["expires"] == f"{ca.certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S}"
    assert "subject_hash" not in record
    authorities = rig.platform.metadata.registry.authorities
    assert [each.id for each in authorities.trusted()] == [record["id"]]
    assert await rig.call("delete_terminal_authority", uid=made["uid"]) == {"uid": made["uid"]}
    assert (await listed(rig), [*authorities.trusted()]) == ([], [])
    told = await rig.call("get_audit_list", entity="terminal_authority")
    assert [each["action"] for each in told["data"]] == ["delete", "create"]


async def test_authorities_are_for_administrators_of_the_company(rig: Rig) -> None:
    made = await rig.call("create_terminal_authority", name="ours", certificate=ClientCa("Ours").pem)
    assert await listed(rig, "stranger") == []
    assert (await rig.ask("delete_terminal_authority", "stranger", uid=made["uid"]))["code"] == 10404
    other = rig.services.tokens.verify(rig.tokens["stranger"]).company_id
    theirs = {"name": "theirs", "certificate": ClientCa("Theirs").pem, "permission_company_id": other}
    assert (await rig.ask("create_terminal_authority", **theirs))["code"] == 10403
    created = await rig.call("create_terminal_authority", "root", **theirs)
    assert [each["uid"] for each in await listed(rig, "stranger")] == [created["uid"]]
    for action in ("create_terminal_authority", "get_terminal_authority_list", "delete_terminal_authority"):
        assert (await rig.ask(action, "operator", name="k", certificate="c", uid="k"))["code"] == 10403


async def test_a_name_is_one_companys(rig: Rig) -> None:
    """Unless both have the same certificate; a company may have several of one name, as when one is renewed."""
    first, renewed = ClientCa("Acme"), ClientCa("Acme")
    await rig.call("create_terminal_authority", name="first", certificate=first.pem)
    again = await rig.ask("create_terminal_authority", name="again", certificate=first.pem)
    assert (again["code"], again["info"]) == (500, "certificate: the company has this authority already")
    await rig.call("create_terminal_authority", name="renewed", certificate=renewed.pem)
    refused = await rig.ask("create_terminal_authority", "stranger", name="twin", certificate=ClientCa("Acme").pem)
    assert refused["info"] == "certificate: another company's authority has this subject; give yours another one"
    await rig.call("delete_terminal_authority", uid=(await listed(rig))[1]["uid"])
    await rig.call("create_terminal_authority", "stranger", name="same", certificate=first.pem)
    assert len(await listed(rig)) == len(await listed(rig, "stranger")) == 1


async def test_there_are_as_many_as_may_be(rig: Rig) -> None:
    authorities = rig.platform.metadata.entities.authorities
    authorities.of_company, authorities.of_all = 2, 3
    for number in range(2):
        await rig.call("create_terminal_authority", name="k", certificate=ClientCa(f"Ours {number}").pem)
    refused = await rig.ask("create_terminal_authority", name="k", certificate=ClientCa("Ours 3").pem)
    assert refused["info"].endswith("3 authorities, and may have 2 (limits.company_authorities)")
    await rig.call("create_terminal_authority", "stranger", name="k", certificate=ClientCa("Theirs").pem)
    refused = await rig.ask("create_terminal_authority", "stranger", name="k", certificate=ClientCa("Theirs 2").pem)
    assert refused["info"].endswith("(limits.authorities)")


@pytest.mark.long_turns("it makes long keys itself")
async def test_what_is_no_authority_is_refused(rig: Rig) -> None:
    ca = ClientCa("Acme")
    leaf = ca.issue("leaf").certificate.public_bytes(Encoding.PEM).decode()
    key = ca.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    weak, slow = rsa.generate_private_key(65_537, 1_024), dsa.generate_private_key(2_048)
    for wrong, said in (
        ("", "length >= 1"),
        ("ca.pem", "expected one PEM certificate, got 0"),
        (ca.pem + ClientCa("Other").pem, "expected one PEM certificate, got 2"),
        (ca.pem.replace("MII", "MIX", 1), ""),
        (f"{ca.pem}{key}", "holds a private key"),
        (f"{key}{ca.pem}", "holds a private key"),
        (leaf, "basicConstraints has no CA:TRUE"),
        (ClientCa("Old", days=(-9, -1)).pem, "has expired"),
        ("x" * 17_000, "length <= 16384"),
        (ClientCa("Weak", key=weak).pem, "expected an RSA key of 2048 to 8192 bits, got 1024"),
        (ClientCa("Slow", key=slow).pem, "expected a key of RSA, ECDSA or Ed25519"),
    ):
        answer = await rig.ask("create_terminal_authority", name="k", certificate=wrong)
        assert (answer["code"], said in answer["info"]) == (10401, True), (said, answer["info"])
        assert "BEGIN" not in str(answer)
    assert await listed(rig) == []
    async with rig.services.entities.terminals._database.reading() as connection:  # type: ignore[attr-defined]
        for table in METADATA.sorted_tables:
            assert "PRIVATE KEY" not in str((await connection.execute(sa.select(table))).all()), table.name
