"""Login by client certificate over TLS: a company's authority vouches for its own terminals, and for nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certificate_authority import Authority
from client_certificates import SERVER, ClientCa, Shown, self_signed, signed_by_leaf
from mqtt_bytes import field, frame
from own_platform import own_platform
from platform_site import Company, Site
from support import require_program
from terrazzo.domain.certificates.authority import ClientAuthority, parse_authority
from terrazzo.domain.claims.claim_key import hash_of
from terrazzo.domain.refusals.reasons import STRANGERS_ARE_TOLD
from terrazzo.embedded.client_trust import WHY_ENDED
from terrazzo.errors import Conflict
from waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

ACCEPTED, WRONG, NOT_AUTHORIZED = 0, 0x86, 0x87


@dataclass
class World:
    """Two companies, each with an authority; a server that trusts both."""

    site: Site
    port: int
    folder: Path
    server: Authority
    one: Company
    two: Company
    ca_one: ClientCa
    ca_two: ClientCa

    async def trust(self, company: Company, ca: ClientCa | x509.Certificate) -> Any:
        """Registers an authority, and waits until TLS knows it."""
        certificate = ca.certificate if isinstance(ca, ClientCa) else ca
        values = {"name": "ca", "certificate": certificate.public_bytes(Encoding.PEM).decode()}
        made = await self.site.entities.authorities.create(company.actor, values)
        await self.until_trusted(certificate)
        return made

    async def until_trusted(self, certificate: x509.Certificate, *, is_trusted: bool = True) -> None:
        """Waits until TLS trusts an authority, or does so no longer."""
        [certificates] = self.site.broker._listeners._certificates
        der = certificate.public_bytes(Encoding.DER)
        await until(lambda: (der in certificates.context.get_ca_certs(binary_form=True)) is is_trusted, "TLS follows")

    async def terminal(self, uid: str, company: Company | None = None, **values: Any) -> Any:
        return await (company or self.one).terminal(uid, **{"mode": "cert"} | values)

    def context(self, shown: Shown | None) -> ssl.SSLContext:
        return self.server.client_context() if shown is None else shown.context(self.folder / "shown", self.server.ca)

    async def open(
        self,
        uid: str,
        shown: Shown | None,
        *,
        protocol: int = 5,
        username: str | None = None,
        password: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> Line:
        """A connection that has logged in or was refused."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context or self.context(shown))
        flags = 2 | (0x80 if username is not None else 0) | (0x40 if password is not None else 0)
        given = [field(each) for each in (username, password) if each is not None]
        properties = b"\0" if protocol == 5 else b""
        writer.write(frame(0x10, field("MQTT"), bytes((protocol, flags)), b"\0\0", properties, field(uid), *given))
        try:
            async with asyncio.timeout(10):
                head = await reader.readexactly(2)
                body = await reader.readexactly(head[1])
        except BaseException:
            await hang_up(writer)
            raise
        assert head[0] == 0x20
        if body[1]:
            await hang_up(writer)
        return Line(reader, writer, body[1], body[2:])

    async def login(self, uid: str, shown: Shown | None, **options: Any) -> int:
        """The code of CONNACK."""
        line = await self.open(uid, shown, **options)
        await hang_up(line.writer)
        return line.code

    async def cut(self, uid: str, shown: Shown) -> None:
        """Asserts that TLS lets nobody in with this certificate."""
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await self.login(uid, shown)

    def reasons(self, uid: str) -> list[str]:
        """Why a terminal was refused, the last one first."""
        terminal = self.site.platform.metadata.registry.terminal(uid)
        assert terminal is not None
        refusals = self.site.platform.messaging.refusals
        return [f"{each.reason}: {each.detail}" for each in refusals.of_terminal(terminal.id)]

    def at_address(self) -> dict[str, str]:
        """What failed before anybody said who it is: the reasons with their details."""
        found = self.site.platform.messaging.refusals.at_addresses(["127.0.0.1", "::1"])
        return {each.reason: each.detail for each in found}


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()


@dataclass
class Line:
    """A connection: the code of its CONNACK, and what stood after it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    code: int
    rest: bytes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("certificates")
    server = Authority(folder / "server")
    pair = server.issue("server")
    mqtt = {"tls_port": 0, "tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    async with own_platform(folder / "data", limits={"login_failures": 0}, mqtt=mqtt) as (platform, addresses):
        site, port = Site(platform, addresses), int(addresses.mqtt[1].rpartition(":")[2])
        one, two = await site.company("one"), await site.company("two")
        made = World(site, port, folder, server, one, two, ClientCa("One Root"), ClientCa("Two Root"))
        await made.trust(one, made.ca_one)
        await made.trust(two, made.ca_two)
        yield made


@pytest.mark.parametrize("protocol", [4, 5])
async def test_a_certificate_of_the_companys_authority_is_enough(world: World, protocol: int) -> None:
    for number, names in enumerate(({"name": "{}"}, {"dns": ["{}"]}, {"uris": ["{}"]}, {"name": "P 7", "dns": ["{}"]})):
        uid = f"urn:good-{protocol}-{number}"
        given = {key: uid if isinstance(value, str) and "{" in value else value for key, value in names.items()}
        given = {key: [uid] if isinstance(value, list) else value for key, value in given.items()}
        await world.terminal(uid)
        assert await world.login(uid, world.ca_one.issue(**given), protocol=protocol) == ACCEPTED
        assert await world.login(uid, world.ca_one.issue(**given), username="anything", password="at all") == ACCEPTED
        assert world.reasons(uid) == []


async def test_another_companys_authority_vouches_for_nobody_here(world: World) -> None:
    await world.terminal("ours")
    line = await world.open("ours", world.ca_two.issue("ours"))
    assert (line.code, STRANGERS_ARE_TOLD.encode() in line.rest) == (NOT_AUTHORIZED, True)
    [told] = world.reasons("ours")
    assert told == "certificate_authority: signed by an authority of another company (CN=Two Root)"
    assert await world.login("ours", world.ca_one.issue("ours")) == ACCEPTED


async def test_whose_terminal_moves_needs_the_new_companys_certificate(world: World) -> None:
    """One CA may serve two companies that both want it: each has registered it."""
    shared = ClientCa("Shared")
    await world.trust(world.one, shared)
    await world.terminal("in-two", world.two)
    assert await world.login("in-two", shared.issue("in-two")) == NOT_AUTHORIZED
    await world.trust(world.two, shared)
    assert await world.login("in-two", shared.issue("in-two")) == ACCEPTED


async def test_a_certificate_for_another_uid(world: World) -> None:
    await world.terminal("first")
    await world.terminal("second")
    assert await world.login("second", world.ca_one.issue("first")) == NOT_AUTHORIZED
    assert world.reasons("second") == ["certificate_uid: it is for first"]
    assert await world.login("second", world.ca_one.issue("Second")) == NOT_AUTHORIZED


async def test_a_certificate_of_two_names_is_nobodys(world: World) -> None:
    await world.terminal("left")
    await world.terminal("right")
    for shown in (world.ca_one.issue(dns=["left", "right"]), world.ca_one.issue(dns=["left"], uris=["right"])):
        for uid in ("left", "right"):
            assert await world.login(uid, shown) == NOT_AUTHORIZED
    assert world.reasons("left") == ["certificate_unusable: it names left, right"]
    assert await world.login("left", world.ca_one.issue("left", dns=["right"])) == NOT_AUTHORIZED
    assert await world.login("left", world.ca_one.issue()) == NOT_AUTHORIZED


async def test_what_tls_refuses_is_found_by_address(world: World) -> None:
    await world.terminal("tls")
    leaf = world.ca_one.issue("tls")
    for shown, reason, detail in (
        (self_signed("tls"), "certificate_authority", "self-signed certificate"),
        (ClientCa("Nobody").issue("tls"), "certificate_authority", "unable to get local issuer certificate"),
        (world.ca_one.issue("tls", days=(-5, -1)), "certificate_expired", "certificate has expired"),
        (world.ca_one.issue("tls", days=(1, 5)), "certificate_not_yet_valid", "certificate is not yet valid"),
        (world.ca_one.issue("tls", usage=[SERVER]), "certificate_unusable", "unsuitable certificate purpose"),
        (signed_by_leaf(world.ca_one.issue("other-leaf"), "tls"), "certificate_unusable", "invalid CA certificate"),
    ):
        await world.cut("tls", shown)
        await until(
            lambda reason=reason, detail=detail: detail in world.at_address().get(reason, ""),
            f"{detail}, {world.at_address()}",
        )
    assert world.reasons("tls") == []
    assert await world.login("tls", leaf) == ACCEPTED


async def test_an_authoritys_own_certificate_is_no_terminals(world: World) -> None:
    await world.terminal("sub-ca")
    assert await world.login("sub-ca", world.ca_one.issue("sub-ca", is_ca=True)) == NOT_AUTHORIZED
    assert world.reasons("sub-ca") == ["certificate_unusable: it is an authority's own"]


async def test_neither_password_nor_signature_nor_scram_open_it(world: World) -> None:
    """What is answered is what is answered for a uid that nobody has."""
    await world.terminal("only-cert", username="user", pin="secret-pin")
    for given in ({}, {"username": "user"}, {"username": "user", "password": "secret-pin"}):
        line = await world.open("only-cert", None, **given)
        nobody = await world.open("nobody-has-this", None, **given)
        assert (line.code, line.rest) == (nobody.code, nobody.rest)
        assert line.code == (WRONG if len(given) == 2 else NOT_AUTHORIZED)
    assert world.reasons("only-cert") == ["certificate_missing: "]
    foreign = await world.open("only-cert", world.ca_two.issue("only-cert"), username="user", password="secret-pin")
    unknown = await world.open("nobody-has-this", world.ca_two.issue("only-cert"), username="u", password="p")
    assert (foreign.code, foreign.rest) == (unknown.code, unknown.rest)


async def test_a_certificate_alone_opens_no_other_mode(world: World) -> None:
    await world.terminal("by-pin", mode="pwd")
    shown = world.ca_one.issue("by-pin")
    assert await world.login("by-pin", shown) == NOT_AUTHORIZED
    assert await world.login("by-pin", shown, username="u-by-pin", password="guess") == WRONG
    assert await world.login("by-pin", shown, username="u-by-pin", password="pin-by-pin") == ACCEPTED
    other = world.ca_one.issue("another")
    assert await world.login("by-pin", other, username="u-by-pin", password="pin-by-pin") == NOT_AUTHORIZED
    assert world.reasons("by-pin")[0] == "certificate_name: "


async def test_a_claim_and_a_password_go_with_a_certificate_that_names_the_uid_in_any_way(world: World) -> None:
    values = {"name": "k", "uses": 9, "config_id": world.one.config}
    await world.site.entities.claim_keys.create_hashed(world.one.actor, values, hash_of(b"any key"))
    await world.terminal("both-ways", mode="pwd")
    claim, login = (
        {"username": "claim", "password": "any key"},
        {"username": "u-both-ways", "password": "pin-both-ways"},
    )
    for uid, given in (("coming-in", claim), ("both-ways", login)):
        assert await world.login(uid, world.ca_one.issue("Pump 7", dns=[uid]), **given) == ACCEPTED
        assert await world.login(uid, world.ca_one.issue("Pump 7", dns=["pump-7"]), **given) == NOT_AUTHORIZED


async def test_who_is_disabled_is_told_so(world: World) -> None:
    await world.terminal("disabled", is_available=0)
    line = await world.open("disabled", world.ca_one.issue("disabled"))
    assert (line.code, b"the terminal is disabled" in line.rest) == (NOT_AUTHORIZED, True)


async def test_a_removed_authority_ends_and_lets_nobody_in(world: World) -> None:
    leaving = ClientCa("Leaving")
    made = await world.trust(world.one, leaving)
    await world.terminal("stays")
    await world.terminal("leaves")
    shown = leaving.issue("leaves")
    stays = await world.open("stays", world.ca_one.issue("stays"))
    leaves = await world.open("leaves", shown)
    assert (stays.code, leaves.code) == (ACCEPTED, ACCEPTED)
    await world.site.entities.authorities.delete(world.one.actor, made["uid"])
    async with asyncio.timeout(10):
        ended = await leaves.reader.read(200)
    assert (ended[0], WHY_ENDED.encode() in ended) == (0xE0, True)
    await world.until_trusted(leaving.certificate, is_trusted=False)
    await world.cut("leaves", shown)
    stays.writer.write(b"\xc0\0")
    assert await stays.reader.readexactly(2) == b"\xd0\0"
    for line in (stays, leaves):
        await hang_up(line.writer)
    await world.trust(world.one, leaving)
    assert await world.login("leaves", shown) == ACCEPTED


async def test_an_authority_that_tls_still_trusts_counts_no_longer(world: World) -> None:
    """The registry decides, also in the moment before TLS has heard of it, and where another company has it too."""
    both = ClientCa("Both")
    ours = await world.trust(world.one, both)
    await world.trust(world.two, both)
    await world.terminal("was-ours")
    await world.site.entities.authorities.delete(world.one.actor, ours["uid"])
    assert await world.login("was-ours", both.issue("was-ours")) == NOT_AUTHORIZED
    assert "another company" in world.reasons("was-ours")[0]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_that_is_taken_up_again_is_checked_anew(world: World, version: ssl.TLSVersion) -> None:
    name = f"resumed-{version.name}"
    passing = ClientCa(f"Passing {version.name}")
    made = await world.trust(world.one, passing)
    await world.terminal(name)
    await world.terminal(f"other-{name}")
    context = world.context(passing.issue(name))
    context.maximum_version = version

    def login(uid: str, session: ssl.SSLSession | None = None) -> tuple[int, ssl.SSLSession | None, bool | None]:
        with (
            socket.create_connection(("127.0.0.1", world.port), timeout=10) as raw,
            context.wrap_socket(raw, server_hostname="localhost", session=session) as line,
        ):
            line.sendall(frame(0x10, field("MQTT"), b"\x05\x02\0\0\0", field(uid)))
            answer = line.recv(200)
            if not answer:
                raise ConnectionError
            return answer[3], line.session, line.session_reused

    code, session, is_reused = await asyncio.to_thread(login, name)
    assert (code, is_reused) == (ACCEPTED, False)
    code, _, is_reused = await asyncio.to_thread(login, name, session)
    assert (code, is_reused) == (ACCEPTED, True)
    code, _, is_reused = await asyncio.to_thread(login, f"other-{name}", session)
    assert (code, is_reused) == (NOT_AUTHORIZED, True)
    registry = world.site.platform.metadata.registry
    [authority] = [each for each in registry.authorities.trusted() if each.id == made["id"]]
    registry.authorities._authorities.pop(made["id"])
    registry.authorities._by_subject.pop(authority.subject)  # TLS is not told: its tickets stay good
    code, _, is_reused = await asyncio.to_thread(login, name, session)
    assert (code, is_reused) == (NOT_AUTHORIZED, True)
    registry.authorities.put(authority)
    await world.site.entities.authorities.delete(world.one.actor, made["uid"])
    await world.until_trusted(passing.certificate, is_trusted=False)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.to_thread(login, name, session)


async def test_a_look_alike_does_not_get_in_between(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """OpenSSL finds an issuer by its name and tries one. A second authority of that name, with another key or with the
    same key and narrower uses, would cut another company's terminals off."""
    await world.terminal("envied")
    for twin in (
        ClientCa("One Root"),
        ClientCa("One Root", key=world.ca_one.key, signed_by=world.ca_two, usage=[SERVER]),
    ):
        values = {"name": "twin", "certificate": twin.pem}
        with pytest.raises(Conflict, match="another company's authority has this subject"):
            await world.site.entities.authorities.create(world.two.actor, values)
        registry = world.site.platform.metadata.registry
        certificate = parse_authority(twin.pem)
        registry.authorities.put(ClientAuthority(999_999, world.two.actor.company_id, certificate))  # as if by force
        assert certificate not in [each.certificate for each in registry.authorities.trusted()]
        await world.trust(world.two, ClientCa(f"Next {twin.certificate.serial_number}"))
        assert await world.login("envied", world.ca_one.issue("envied")) == ACCEPTED
        registry.authorities.drop(999_999)


async def test_one_that_nobody_has_registered_is_found_by_its_company(world: World) -> None:
    assert await world.login("from-the-box", world.ca_two.issue("from-the-box")) == NOT_AUTHORIZED
    unknown = world.site.platform.terminals.unknown
    assert "from-the-box" in [each.uid for each in unknown.found(world.two.actor)]
    assert "from-the-box" not in [each.uid for each in unknown.found(world.one.actor)]


async def test_a_claim_key_for_certificates_makes_no_terminal_of_another_kind(world: World) -> None:
    """Neither the pin of the claim makes the record, nor another company's certificate."""
    values = {"name": "k", "uses": 1, "config_id": world.one.config, "mode": "cert"}
    await world.site.entities.claim_keys.create_hashed(world.one.actor, values, hash_of(b"the key"))
    line = await world.open("claimed", None, username="claim", password="the key")
    line.writer.write(frame(0x82, b"\0\1\0", field("p2p/claimed"), b"\1"))
    async with asyncio.timeout(10):
        told = b""
        while b'"Pin":"' not in told:
            told += await line.reader.read(1_000)
    await hang_up(line.writer)
    username, pin = (told.partition(name)[2].partition(b'"')[0].decode() for name in (b'"Username":"', b'"Pin":"'))
    assert await world.login("claimed", None, username=username, password=pin) == WRONG
    assert await world.login("claimed", world.ca_two.issue("claimed")) == NOT_AUTHORIZED
    assert await world.login("claimed", world.ca_one.issue("unclaimed")) == NOT_AUTHORIZED
    assert world.site.platform.metadata.registry.terminal("claimed") is None
    assert await world.login("claimed", world.ca_one.issue("claimed")) == ACCEPTED
    made = world.site.platform.metadata.registry.terminal("claimed")
    assert made is not None
    assert (made.mode, made.company_id) == ("cert", world.one.actor.company_id)


async def test_an_intermediate_authority_is_registered_itself(world: World) -> None:
    middle = ClientCa("Middle", signed_by=world.ca_one)
    await world.terminal("below")
    shown = middle.issue("below", chain=(middle.certificate,))
    assert await world.login("below", shown) == NOT_AUTHORIZED
    assert world.reasons("below") == ["certificate_authority: signed by nobody who is registered (CN=Middle)"]
    await world.trust(world.one, middle)
    assert await world.login("below", shown) == ACCEPTED
    assert await world.login("below", middle.issue("below")) == ACCEPTED  # without the chain


async def test_what_is_documented_for_firmware(world: World) -> None:
    """The commands of docs/terminals.md, as they stand there."""
    document = (Path(__file__).parents[2] / "docs" / "terminals.md").read_text(encoding="utf-8")
    commands = document.partition("<!-- certificate commands -->\n```sh\n")[2].partition("```")[0]
    require_program("openssl")
    require_program("mosquitto_pub")
    folder = world.folder / "firmware"
    folder.mkdir()
    (folder / "server-ca.pem").write_bytes(world.server.ca.read_bytes())
    making, _, publishing = commands.partition("mosquitto_pub")
    await asyncio.to_thread(_run, making, folder)
    pem = (folder / "ca.pem").read_text()
    await world.trust(world.one, x509.load_pem_x509_certificate(pem.encode()))
    await world.terminal("pump-7")
    told = ("mosquitto_pub" + publishing).replace("platform.example", "localhost").replace("8883", str(world.port))

    await asyncio.to_thread(_run, told, folder)
    assert json.loads((await world.site.grid("g/pump-7/r"))[-1].body) == {"Temperature": 21.5}


def _run(commands: str, folder: Path, *, check: bool = True) -> int:
    done = subprocess.run(["/bin/sh", "-ec", commands], cwd=folder, capture_output=True, timeout=30, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.returncode
