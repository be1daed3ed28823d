"""Fleets that nobody has registered come in by a claim key, with pins or certificates, over lines that are cut.

The long form (``make long``) has 1,000 terminals with pins and 100 with certificates, over MQTT 3.1.1 and 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from certificate_authority import Authority
from client_certificates import ClientCa
from cutting_proxy import CuttingProxy
from length import IS_LONG, rounds
from own_platform import own_platform
from platform_site import Company, Site, running_site
from terrazzo.domain.claims.claim_key import hash_of
from terrazzo_simulators.claim import provisioned
from terrazzo_simulators.device import Habits
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.link import LinkError, LinkOptions
from terrazzo_simulators.options import parse_run
from terrazzo_simulators.spec import Naming, TerminalSpec, generate_specs
from terrazzo_simulators.tls import CertificateMaker, Tls
from waiting import until

PINS, CERTIFICATES = rounds(50, 1_000), rounds(10, 100)
STEPS = 9  # pieces of a connection until it has claimed or logged in: TLS and MQTT
CLAIMING = 5  # CONNECT, CONNACK, SUBSCRIBE, SUBACK, the credentials
CUTS = 3  # connections of each terminal, on average
LONGEST_S = 900 if IS_LONG else 40


@dataclass(frozen=True)
class Factory:
    """A platform with TLS and without, and where new terminals have what they need from."""

    site: Site
    tls_port: int
    ca: ClientCa
    server_ca: Path
    folder: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def factory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Factory]:
    folder = tmp_path_factory.mktemp("factory")
    server, ca = Authority(folder / "server"), ClientCa("Factory")
    pair = server.issue("server")
    ca.as_shown().write(folder, "ca")
    mqtt = {"provision_plain": True, "tls_port": 0, "tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    async with own_platform(folder / "data", limits={"login_failures": 0}, mqtt=mqtt) as (platform, addresses):
        port = int(addresses.mqtt[1].rpartition(":")[2])
        yield Factory(Site(platform, addresses), port, ca, server.ca, folder)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("mode", ["pwd", "auto", "cert"])
@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
async def test_a_fleet_comes_in_and_reports(
    factory: Factory, protocol: str, mode: str, record_property: Callable[[str, object], None]
) -> None:
    site, count = factory.site, CERTIFICATES if mode == "cert" else PINS
    company = await site.company(f"{protocol}-{mode}")
    values = {"name": "k", "uses": count, "prefix": f"{mode}-{protocol}-", "config_id": company.config, "mode": mode}
    key = await site.entities.claim_keys.create_hashed(company.actor, values, hash_of(f"{protocol} {mode}".encode()))
    naming = Naming(uid=f"{mode}-{protocol}-{{n:05d}}", username="unknown", pin="unknown")
    specs = generate_specs(count, naming=naming, protocol=protocol, mode=mode)
    tls = await _certificates(factory, company, specs) if mode == "cert" else None
    target = site.port if tls is None else factory.tls_port
    async with CuttingProxy(target, cuts=count * CUTS, steps=STEPS).running() as proxy:
        options = FleetOptions(
            link=LinkOptions(port=proxy.port, tls=tls),
            habits=Habits(interval_s=rounds(1, 10) / 2, backoff_s=0.02, backoff_most_s=0.5),
            connect_rate=0,
            claim_key=f"{protocol} {mode}",
        )
        fleet = Fleet(specs, options)
        async with fleet.running():
            async with asyncio.timeout(LONGEST_S):
                await fleet.connected()
            for device in fleet.devices.values():
                device.cut()
            await until(lambda: fleet.statistics.acknowledged > 3 * count, timeout_s=LONGEST_S)
        assert proxy.cut > count  # the others had done what they came for before
        steps = STEPS if mode == "cert" else CLAIMING  # of TLS the first ones are the handshake's
        assert set(range(1, steps + 1)) <= proxy.cut_after.keys()  # at every step until they have their pin
    for name, value in (("connections", proxy.made), ("cut", proxy.cut), ("claims", fleet.statistics.claims)):
        record_property(name, value)  # --junitxml has them
    await _has_come_in(factory, company, fleet, key["uid"])


async def _certificates(factory: Factory, company: Company, specs: list[TerminalSpec]) -> Tls:
    """Certificates that the simulator makes with the company's authority."""
    values = {"name": "ca", "certificate": factory.ca.pem}
    await factory.site.entities.authorities.create(company.actor, values)
    folder = factory.folder / f"terminals of {company.actor.company_id}"
    maker = CertificateMaker(factory.folder / "ca.pem", factory.folder / "ca.key")
    assert maker.make_missing(folder, [spec.uid for spec in specs]) == len(specs)
    return Tls(ca=factory.server_ca, certificates=folder)


async def _has_come_in(factory: Factory, company: Company, fleet: Fleet, key: str) -> None:
    """None twice, none left over: the records are those of the fleet, with the pins that it knows."""
    site, count = factory.site, len(fleet.devices)
    rows = (await site.entities.terminals.page(company.actor, page_size=1_000)).rows
    assert sorted(row["uid"] for row in rows) == sorted(fleet.devices)
    assert {row["uid"]: row["pin"] for row in rows} == {
        device.spec.uid: device.spec.pin for device in fleet.devices.values()
    }
    assert (await site.entities.claim_keys.item(company.actor, key))["used"] == count
    assert fleet.statistics.claims >= count
    assert fleet.statistics.errors == 0
    provisioning = site.platform.terminals.provisioning
    assert (provisioning._promises, provisioning._oldest, provisioning._of_key) == ({}, {}, {})
    await until(lambda: not provisioning._open, "all that claimed are gone")


async def test_without_a_good_key_nobody_comes_in(tmp_path: Path) -> None:
    async with running_site(tmp_path, mqtt={"provision_plain": True}) as site:
        specs = [TerminalSpec(uid="new-1", username="u", pin="p")]
        options = FleetOptions(
            link=LinkOptions(port=site.port), habits=Habits(interval_s=None, backoff_s=0.01), claim_key="wrong"
        )
        fleet = Fleet(specs, options)
        async with fleet.running():
            await until(lambda: fleet.statistics.login_refused > 1)
        assert fleet.statistics.claims == 0


def test_answers_that_make_no_sense_are_errors() -> None:
    spec = TerminalSpec(uid="t", username="u", pin="p", type="Adapter-X")
    told = provisioned(spec, b'{"Act": "Provision", "Username": "n", "Pin": "q", "Mode": "auto"}')
    assert (told.username, told.pin, told.mode, told.type) == ("n", "q", "auto", "Adapter-X")
    for payload in (
        b"",
        b"[]",
        b"{}",
        b'{"Act": "Reboot"}',
        b'{"Act": "Provision", "Username": "n", "Pin": 7, "Mode": 1}',
    ):
        with pytest.raises(LinkError, match="can't be read"):
            provisioned(spec, payload)


def test_the_option_and_what_it_does_not_go_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_run(["run", "--claim-key", "k"]).fleet.claim_key == "k"
    with pytest.raises(SystemExit):
        parse_run(["run", "--claim-key", "k", "--mode", "scram-sha-1"])
    assert "--claim-key" in capsys.readouterr().err


def test_the_options_of_certificates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ca = ClientCa("Factory")
    cert, key = ca.as_shown().write(tmp_path, "ca")
    folder = tmp_path / "made"
    given = ["run", "--mode", "cert", "--count", "2", "--tls-ca", str(cert), "--certificates", str(folder)]
    run = parse_run([*given, "--cert-authority", str(cert), "--cert-authority-key", str(key)])
    assert run.fleet.link.tls == Tls(ca=cert, certificates=folder)
    assert sorted(each.name for each in folder.iterdir()) == [
        f"sim-0000{n}.{kind}" for n in (1, 2) for kind in ("key", "pem")
    ]
    assert {(folder / f"sim-0000{n}.key").stat().st_mode & 0o777 for n in (1, 2)} == {0o600}
    assert parse_run(given).fleet.link.tls == run.fleet.link.tls  # they are there now
    for wrong, named in (
        (["run", "--mode", "cert"], "--tls-ca"),
        ([*given[:-2]], "--certificates"),
        ([*given, "--first", "7"], "sim-00007.key"),
        ([*given, "--cert-authority", str(cert)], "--cert-authority-key"),
        ([*given, "--cert-authority", str(cert), "--cert-authority-key", str(cert)], "--cert-authority"),
        (["run", "--tls-ca", str(tmp_path / "none")], "there is no file"),
        (["run", "--tls-ca", str(cert), "--mode", "scram-sha-1"], "SCRAM"),
    ):
        with pytest.raises(SystemExit):
            parse_run(wrong)
        assert named in capsys.readouterr().err, wrong
