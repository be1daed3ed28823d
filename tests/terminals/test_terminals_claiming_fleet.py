"""A simulated fleet that nobody has registered comes in by a claim key, over lines that are cut."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from platform_site import running_site
from terrazzo.domain.claims.claim_key import hash_of
from terrazzo_simulators.claim import provisioned
from terrazzo_simulators.device import Habits
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.link import LinkError, LinkOptions
from terrazzo_simulators.options import parse_run
from terrazzo_simulators.spec import Naming, TerminalSpec, generate_specs
from waiting import until

MANY = 30


@pytest.mark.parametrize(("protocol", "mode"), [("3.1.1", "pwd"), ("5.0", "auto")])
async def test_a_fleet_comes_in_and_reports(tmp_path: Path, protocol: str, mode: str) -> None:
    async with running_site(tmp_path, mqtt={"provision_plain": True}) as site:
        company = await site.company()
        values = {"name": "k", "uses": MANY, "prefix": "new-", "config_id": company.config, "mode": mode}
        key = await site.entities.claim_keys.create_hashed(company.actor, values, hash_of(b"the key"))
        naming = Naming(uid="new-{n:05d}", username="unknown", pin="unknown")
        specs = generate_specs(MANY, naming=naming, protocol=protocol, mode=mode)
        options = FleetOptions(
            link=LinkOptions(port=site.port),
            habits=Habits(interval_s=0.5, backoff_s=0.05),
            connect_rate=0,
            claim_key="the key",
        )
        fleet = Fleet(specs, options)
        async with fleet.running():
            for _ in range(5):
                await asyncio.sleep(0)
                for device in fleet.devices.values():
                    device.cut()
            async with asyncio.timeout(30):
                await fleet.connected()
            for device in fleet.devices.values():
                device.cut()
            await until(lambda: fleet.statistics.acknowledged > 3 * MANY)
        rows = (await site.entities.terminals.page(company.actor, page_size=100)).rows
        assert sorted(row["uid"] for row in rows) == sorted(fleet.devices)
        assert {row["uid"]: row["pin"] for row in rows} == {
            device.spec.uid: device.spec.pin for device in fleet.devices.values()
        }
        assert (await site.entities.claim_keys.item(company.actor, key["uid"]))["used"] == MANY
        assert fleet.statistics.claims >= MANY
        assert fleet.statistics.errors == 0


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
