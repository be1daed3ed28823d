"""Fleets against a real Mosquitto: login, reports, commands, quality of service, outages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from mosquitto_peer import Mosquitto, Observer, Seen

from support import free_port
from terrazzo_simulators.device import Habits
from terrazzo_simulators.faults import Faults
from terrazzo_simulators.fleet import Fleet, FleetOptions
from terrazzo_simulators.link import LinkOptions, LoginRefused
from terrazzo_simulators.payload import decode
from terrazzo_simulators.sealing import Seal
from terrazzo_simulators.spec import Naming, TerminalSpec, generate_specs
from waiting import until

QUICK: dict[str, Any] = {"interval_s": 0.1, "reboot_s": 0.2, "upgrade_s": 0.2, "backoff_s": 0.1, "backoff_most_s": 0.5}


def specs(count: int = 3, **common: Any) -> list[TerminalSpec]:
    return generate_specs(count, naming=Naming(), **common)


def options(port: int, **habits: Any) -> FleetOptions:
    return FleetOptions(
        link=LinkOptions(port=port, timeout_s=3), habits=Habits(**{**QUICK, **habits}), connect_rate=1_000
    )


async def seen(watching: Observer, wanted: Callable[[list[Seen]], Any]) -> Any:
    return await asyncio.to_thread(watching.wait_for, wanted)


def first(topic: str, **points: Any) -> Callable[[list[Seen]], Seen | None]:
    """The first message on a topic whose points have these values."""

    def find(messages: list[Seen]) -> Seen | None:
        for message in messages:
            if message.topic == topic and points.items() <= message.points.items():
                return message
        return None

    return find


@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_terminals_log_in_and_report(mosquitto: Mosquitto, watching: Observer, protocol: str, qos: int) -> None:
    fleet = Fleet(specs(protocol=protocol), options(mosquitto.port, qos=qos))
    async with fleet.running():
        async with asyncio.timeout(10):
            await fleet.connected()
        for uid in fleet.devices:
            for channel in "ivpr":
                await seen(watching, first(f"g/{uid}/{channel}"))
    statistics = fleet.statistics
    assert statistics.connects == 3
    assert statistics.published >= 12
    assert statistics.acknowledged == (statistics.published if qos else 0)
    assert statistics.disconnects == statistics.errors == statistics.dropped == 0


async def test_what_was_acknowledged_has_arrived(mosquitto: Mosquitto, watching: Observer) -> None:
    fleet = Fleet(specs(20), options(mosquitto.port, interval_s=0.05))
    async with fleet.running():
        await until(lambda: fleet.statistics.acknowledged > 500, "500 acknowledged messages")
    assert fleet.statistics.acknowledged == fleet.statistics.published
    await seen(watching, lambda messages: len(messages) >= fleet.statistics.published)


async def test_a_wrong_pin_is_refused_and_tried_again(mosquitto: Mosquitto) -> None:
    for protocol in ("3.1.1", "5.0"):
        wrong = TerminalSpec(uid="sim-00001", username="sim-00001", pin="wrong", protocol=protocol)
        fleet = Fleet([wrong], options(mosquitto.port))
        async with fleet.running():
            await until(lambda fleet=fleet: fleet.statistics.login_refused >= 2, "two refused attempts")
        (device,) = fleet.devices.values()
        assert isinstance(device.last_error, LoginRefused)
        assert device.last_error.reason == 0x87
        assert fleet.statistics.published == 0


async def test_a_broker_that_is_not_there_is_counted_and_waited_for(tmp_path: Any) -> None:
    fleet = Fleet(specs(1), options(free_port()))
    async with fleet.running():
        await until(lambda: fleet.statistics.unreachable >= 3, "three attempts")
    assert fleet.statistics.connects == 0


async def test_messagepack_and_sealed_payloads(mosquitto: Mosquitto, watching: Observer) -> None:
    packed = TerminalSpec(uid="p", username="sim-00001", pin="pin-00001", format="msgpack")
    sealed = TerminalSpec(uid="s", username="sim-00002", pin="pin-00002", encryption=True)
    async with Fleet([packed, sealed], options(mosquitto.port)).running():
        plain = await seen(watching, lambda messages: [m for m in messages if m.topic == "g/p/r"])
        closed = await seen(watching, lambda messages: [m for m in messages if m.topic == "g/s/r"])
    assert plain[0].payload[0] & 0xF0 == 0x80
    assert decode(plain[0].payload)["BOOT"] == 1
    assert b"BOOT" not in closed[0].payload
    assert decode(Seal(pin="pin-00002", uid="s").open(closed[0].payload))["BOOT"] == 1


async def test_commands_are_obeyed_and_answered(mosquitto: Mosquitto, watching: Observer) -> None:
    fleet = Fleet(specs(2), options(mosquitto.port))
    async with fleet.running():
        await fleet.connected()
        watching.command("sim-00001", {"Act": "Control", "SETPOINT": 6.5}, correlation=b"\x01\xff")
        answer = await seen(watching, first("g/sim-00001/n", Act="Control", Result="ok", SETPOINT=6.5))
        assert answer.correlation == b"\x01\xff"
        await seen(watching, first("g/sim-00001/r", SETPOINT=6.5))
        watching.command("sim-00001", {"Act": "Diag"})
        await seen(watching, first("g/sim-00001/n", Act="Diag", Result="ok"))
        upgrade = {"Act": "AXUpgrade", "Unit": "LUA", "URL": "http://h/lua-3.0.0.bin", "User": "", "Pwd": ""}
        watching.command("sim-00001", upgrade)
        await seen(watching, first("g/sim-00001/n", Act="AXUpgrade", Result="ok", Unit="LUA"))
        await seen(watching, first("g/sim-00001/v", lua_version="3.0.0"))
        assert all(message.points["SETPOINT"] != 6.5 for message in watching.on("g/sim-00002/r"))
    assert fleet.statistics.commands == 3


async def test_commands_over_3_1_1_are_answered_on_the_notices_channel(
    mosquitto: Mosquitto, watching: Observer
) -> None:
    fleet = Fleet(specs(1, protocol="3.1.1"), options(mosquitto.port))
    async with fleet.running():
        await fleet.connected()
        watching.command("sim-00001", {"Act": "Control", "VALVE": "open"})
        await seen(watching, first("g/sim-00001/n", Result="ok", VALVE="open"))
        await seen(watching, first("g/sim-00001/r", VALVE="open"))


async def test_a_repeated_command_is_carried_out_once(mosquitto: Mosquitto, watching: Observer) -> None:
    fleet = Fleet(specs(1), options(mosquitto.port, interval_s=None))
    async with fleet.running():
        await fleet.connected()
        upgrade = {"Act": "AXUpgrade", "Unit": "MCU", "URL": "http://h/next"}
        for _ in range(3):
            watching.command("sim-00001", upgrade, correlation=b"same")
        watching.command("sim-00001", {"Act": "Diag"}, correlation=b"last")
        await seen(watching, first("g/sim-00001/n", Act="Diag"))
        await seen(watching, first("g/sim-00001/v", mcu_version="1.4.1"))
    answers = [message for message in watching.on("g/sim-00001/n") if message.correlation == b"same"]
    assert len(answers) == 3
    assert len(watching.on("g/sim-00001/v")) == 1
    assert fleet.statistics.repeated == 2


@pytest.mark.parametrize(
    "payload", [b"", b"\xc1", b"nonsense", b"[]", b"{}", b'{"Act":7}', b'{"Act":"Control","X":NaN}']
)
async def test_an_unreadable_command_is_answered_and_harms_nothing(
    mosquitto: Mosquitto, watching: Observer, payload: bytes
) -> None:
    fleet = Fleet(specs(1), options(mosquitto.port, interval_s=None))
    async with fleet.running():
        await fleet.connected()
        watching.command("sim-00001", payload)
        answer = await seen(watching, first("g/sim-00001/n", Result="error"))
        assert answer.points["Reason"]
        watching.command("sim-00001", {"Act": "Diag"})
        await seen(watching, first("g/sim-00001/n", Act="Diag"))
    assert fleet.statistics.unreadable == 1


async def test_a_terminal_that_encrypts_obeys_sealed_commands_only(mosquitto: Mosquitto, watching: Observer) -> None:
    spec = TerminalSpec(uid="s", username="sim-00001", pin="pin-00001", encryption=True)
    seal = Seal(pin="pin-00001", uid="s")
    fleet = Fleet([spec], options(mosquitto.port, interval_s=None))

    def answers(messages: list[Seen]) -> list[dict[str, Any]]:
        return [decode(seal.open(message.payload)) for message in messages if message.topic == "g/s/n"]

    async with fleet.running():
        await fleet.connected()
        watching.command("s", {"Act": "Diag"})
        (refused,) = await seen(watching, answers)
        assert refused["Result"] == "error"
        watching.command("s", seal.seal(b'{"Act":"Diag"}'))
        _, diag = await seen(watching, lambda messages: len(answers(messages)) == 2 and answers(messages))
        assert (diag["Act"], diag["Result"]) == ("Diag", "ok")


async def test_a_reboot_ends_the_connection_and_keeps_the_counters(mosquitto: Mosquitto, watching: Observer) -> None:
    fleet = Fleet(specs(1), options(mosquitto.port))
    async with fleet.running():
        await fleet.connected()
        await seen(watching, first("g/sim-00001/r"))
        watching.command("sim-00001", {"Act": "Reboot"})
        await seen(watching, first("g/sim-00001/n", Act="Reboot", Result="ok"))
        await seen(watching, lambda messages: sum(m.topic == "g/sim-00001/i" for m in messages) == 2)
        after = len(watching.on("g/sim-00001/r"))
        await seen(watching, lambda messages: sum(m.topic == "g/sim-00001/r" for m in messages) > after + 2)
    energy = [message.points["ENERGY"] for message in watching.on("g/sim-00001/r")]
    assert energy == sorted(energy)
    assert fleet.statistics.connects == 2
    assert fleet.statistics.disconnects == 1


@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
async def test_an_outage_is_survived_and_what_was_not_acknowledged_comes_after_it(
    mosquitto: Mosquitto, protocol: str
) -> None:
    fleet = Fleet(specs(5, protocol=protocol), options(mosquitto.port))
    async with fleet.running():
        await fleet.connected()
        await asyncio.to_thread(mosquitto.stop)
        await until(lambda: fleet.statistics.connected == 0, "everyone offline")
        offline_from = fleet.statistics.published
        await until(lambda: fleet.statistics.published > offline_from + 20, "reports while offline")
        await asyncio.to_thread(mosquitto.start)
        await fleet.connected()
    assert fleet.statistics.acknowledged == fleet.statistics.published
    assert fleet.statistics.dropped == 0
    assert fleet.statistics.disconnects == 5


async def test_qos_0_while_offline_is_dropped_and_counted(mosquitto: Mosquitto) -> None:
    fleet = Fleet(specs(1), options(mosquitto.port, qos=0))
    async with fleet.running():
        await fleet.connected()
        await asyncio.to_thread(mosquitto.stop)
        await until(lambda: fleet.statistics.dropped > 2, "dropped reports")


async def test_a_storm_cuts_a_share_and_all_come_back(mosquitto: Mosquitto) -> None:
    faults = Faults(storm_every_s=0.5, storm_share=0.5)
    fleet = Fleet(specs(10), options(mosquitto.port, faults=faults))
    async with fleet.running():
        await fleet.connected()
        await until(lambda: fleet.statistics.disconnects >= 10, "two storms")
        await fleet.connected()
    assert fleet.statistics.disconnects % 5 == 0
    assert fleet.statistics.acknowledged == fleet.statistics.published


async def test_faults_lose_cut_and_garble(mosquitto: Mosquitto, watching: Observer) -> None:
    faults = Faults(message_loss=0.2, connection_loss=0.05, malformed=0.3)
    fleet = Fleet(specs(5), options(mosquitto.port, interval_s=0.03, faults=faults))
    async with fleet.running():
        await until(
            lambda: fleet.statistics.lost > 20 and fleet.statistics.malformed > 20 and fleet.statistics.disconnects > 2,
            "faults of each kind",
        )
    broken = 0
    for message in watching.seen:
        try:
            json.loads(message.payload)
        except ValueError:
            broken += 1
    assert broken > 5


async def test_two_runs_with_a_seeded_clock_say_the_same(mosquitto: Mosquitto, watching: Observer) -> None:
    reports = []
    for _ in range(2):
        watching.seen.clear()
        seeded = FleetOptions(
            link=LinkOptions(port=mosquitto.port), habits=Habits(interval_s=0.1, seed=9), clock_start_s=1_767_225_600
        )
        async with Fleet(specs(3), seeded).running():
            for n in (1, 2, 3):
                topic = f"g/sim-0000{n}/r"
                await seen(watching, lambda messages, topic=topic: sum(m.topic == topic for m in messages) >= 5)
        reports.append({n: [m.payload for m in watching.on(f"g/sim-0000{n}/r")][:5] for n in (1, 2, 3)})
    assert reports[0] == reports[1]
    times = [json.loads(payload)["Time"] for payload in reports[0][1]]
    assert times[:3] == ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.100Z", "2026-01-01T00:00:00.200Z"]


async def test_three_hundred_terminals_need_no_thread_each(mosquitto: Mosquitto) -> None:
    import threading

    fleet = Fleet(specs(300), options(mosquitto.port, interval_s=1))
    async with fleet.running():
        async with asyncio.timeout(30):
            await fleet.connected()
        assert fleet.statistics.connected == 300
        assert threading.active_count() < 20
        await until(lambda: fleet.statistics.acknowledged > 1_200, "starts and reports of all")
    assert fleet.statistics.acknowledged == fleet.statistics.published


async def test_a_fleet_has_its_bounds() -> None:
    with pytest.raises(ValueError, match="1 to 5000 terminals, got 0"):
        Fleet([], FleetOptions())
