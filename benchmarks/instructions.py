"""What a message costs in steps of the interpreter, which no other program on the machine disturbs.

``python benchmarks/instructions.py [--only NAME] [--against CHECKOUT] [--by FUNCTIONS]`` counts the bytecodes of the
platform's own code (not the interpreter's libraries, nor what is written in C) on the ways that are taken most: a
publish through the broker, a report through the ingest with and without mapping, a report to live subscribers, a
terminal's login, and requests of the gateway. With another checkout beside it the ratio is printed; with ``--by`` the
functions that cost most. A step is a few nanoseconds, but steps differ: ``versions.py`` tells microseconds of CPU, on a
quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC
from importlib import import_module
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

HERE = Path(__file__)
PACKAGES = ("platform", "broker", "adapters", "simulators", "tests", "benchmarks")
REPORT = (
    b'{"P0": 864, "P1": 394, "P2": 776, "P3": 911, "P4": 430, "P5": 41, "P6": 265, "P7": 988, "P8": 523, "P9": 497}'
)
_TERMINAL = ("t", "u-t", "pin-of-terminal")
_ALWAYS = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
_PAGE = {"terminal_id": "t", "topic": ["r"], "page_size": 10, **_ALWAYS}
_OURS = ("/terrazzo/", "/terrazzo_broker/", "/terrazzo_adapters/", "<plan>")


@contextmanager
def counted(found: Counter[str]) -> Iterator[None]:
    """Counts bytecodes of the platform's code in this thread, by file and function."""

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        name = frame.f_code.co_filename
        part = next((part for part in _OURS if part in name), None)
        if part is None:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            found[f"{name.rpartition(part)[2] or part}:{frame.f_code.co_name}"] += 1
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


async def broker(found: Counter[str], *, qos: int, batch: int, receivers: int = 1, rounds: int = 40) -> int:
    """Publishes on two topics in turn, ``batch`` in a read, to so many subscribers; how many were published."""
    from mqtt_bytes import field, frame
    from terrazzo_broker.broker import Broker
    from terrazzo_broker.settings import BrokerSettings
    from terrazzo_broker.standalone import OpenHooks

    with suppress(KeyError):
        _take_time("terrazzo_broker.scheduling.turns", "SLICE_S")
    started = Broker(BrokerSettings(), OpenHooks(anonymous=True))
    port = getattr(listening := await started.listen_tcp("127.0.0.1", 0), "port", listening)
    sides = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1 + receivers)]
    for number, (reader, writer) in enumerate(sides):
        writer.write(frame(0x10, field("MQTT"), b"\x04\x02\0\0", field(f"c{number}")))
        await reader.readexactly(4)
    (answers, to_broker), *subscribers = sides
    for deliveries, acknowledging in subscribers:
        acknowledging.write(frame(0x82, b"\0\1", field("f/#"), bytes((qos,))))
        await deliveries.readexactly(5)
    first, ids = 0x30 | qos << 1, [(n + 1).to_bytes(2, "big") if qos else b"" for n in range(batch)]
    load = b"".join(frame(first, field(f"f/{n % 2}"), identifier, bytes(64)) for n, identifier in enumerate(ids))

    async def go_round() -> None:
        to_broker.write(load)
        for deliveries, acknowledging in subscribers:
            got = await deliveries.readexactly(len(load))
            if qos:
                step = len(load) // batch
                acknowledging.write(b"".join(b"\x40\x02" + got[n + 7 : n + 9] for n in range(0, len(load), step)))
        if qos:
            await answers.readexactly(4 * batch)

    await _repeat(go_round, 5)
    with counted(found):
        await _repeat(go_round, rounds)
    return rounds * batch


async def ingest(found: Counter[str], *, mapped: bool, batch: int, messages: int = 2_000) -> int:
    """Reports of ten points from a hundred terminals to the store's batches, ``batch`` in a read; how many."""
    import mapping_parts as parts

    _take_time("terrazzo.ingest.pipeline", "_SLICE_S")
    parts.BATCH, parts.KEPT = batch, 2_000
    parts.Batch = _of_connections(parts.Batch)
    load, engine = parts.batches(messages, 100), parts.new_engine(50) if mapped else None
    tasks = parts.Supervisor(on_stop=sys.exit)
    mapper = None if engine is None else parts.ReportMapper(engine, parts.NoOutbox())
    if mapper is not None and hasattr(mapper, "maker"):
        mapper.maker.start(tasks)
    pipeline = parts.IngestPipeline(_Encoding(), parts.Valve(), tasks=tasks, mapper=mapper)
    pipeline.start()
    await parts.take(pipeline, [[message] for message in {each[0].tag.uid: each[0] for each in load}.values()])
    with counted(found):
        await parts.take(pipeline, load)
    await pipeline.stop()
    return messages


def _of_connections(batch: Any) -> Any:
    """Batches of which all of a terminal come from one client."""
    clients: dict[str, Any] = {}

    class Batch(batch):  # type: ignore[misc]
        def __init__(self, messages: Any, room: asyncio.Semaphore) -> None:
            super().__init__(messages, room)
            uid = messages[0].tag.uid
            self.client = clients.setdefault(uid, self.client)

    return Batch


class _Encoding:
    """A store that encodes what it is given, and writes nothing."""

    def __init__(self) -> None:
        from terrazzo_adapters.rocksdb.batch import SeriesCatalogue

        self._catalogue = SeriesCatalogue({}, 1, 0, {}, set(), {})

    async def append(self, records: list[Any], notes: object = None) -> None:
        from terrazzo_adapters.rocksdb.batch import encode_batch

        self._catalogue.accept(encode_batch(records, self._catalogue, lambda _: 0), time.monotonic())
        await asyncio.sleep(0)


async def live(found: Counter[str], *, subscribers: int, framing: str, batch: int = 20, rounds: int = 20) -> int:
    """Frames of one terminal's reports to all subscribers; how many."""
    from terrazzo.live import frames
    from terrazzo.live.frame_sender import FrameSender
    from terrazzo.live.hub import LiveHub
    from terrazzo.live.sources import RecordSource
    from terrazzo.ports.store import Record
    from terrazzo.runtime.supervisor import Supervisor

    _take_time("terrazzo.live.frame_sender", "SLICE_S")
    hub, registry = LiveHub(_OneTerminal(), started_us=1), _OneTerminal()
    sender = FrameSender(hub, Supervisor(on_stop=sys.exit))
    source, sink = RecordSource(hub, registry, zone=UTC), _Sink(getattr(frames, framing))
    _subscribe(hub, sink, subscribers)
    sender.start()
    records = [Record("g/t/r", 1_700_000_000_000_000 + n, REPORT) for n in range(batch)]

    async def go_round() -> None:
        sink.missing = subscribers
        sink.has_all.clear()
        source.on_records(records)
        await sink.has_all.wait()

    await _repeat(go_round, 3)
    with counted(found):
        await _repeat(go_round, rounds)
    await sender.stop()
    return rounds * batch * subscribers


def _subscribe(hub: Any, sink: _Sink, count: int) -> None:
    """As many connections of one user, each with a subscription to the terminal's reports."""
    from terrazzo.access.tokens import Tokens, actor_of
    from terrazzo.api.kernel.operation import Caller
    from terrazzo.api.operations.live import open_session
    from terrazzo.live.selector import Selector
    from terrazzo.metadata.repositories import repository

    given: dict[str, Any] = {"key": bytes(32), "lifetime_s": 1e6, "clock": lambda: time.time_ns() // 1_000}
    if "session_s" in inspect.signature(Tokens).parameters:
        given["session_s"] = 1e6
    nothing: Any = None
    tokens: Any = Tokens(nothing, nothing, **given)
    row = {"id": 1, "username": "u", "token_epoch": 1, "is_active": 1, "role": "admin", "is_super": 0}
    row |= {"permission_company_id": 1}
    change = getattr(repository, "RowChange", None) or repository.Changed  # type: ignore[attr-defined] # as it was called
    tokens.on_user(change(1, "u", row))
    token, services = tokens.issue_for(row), SimpleNamespace(tokens=tokens, live=hub, limits=_Limits)
    for _ in range(count):
        caller = Caller("", token)
        caller.live = open_session(services, caller, sink)  # type: ignore[arg-type]
        caller.live.subscribe(actor_of(row), Selector(frozenset({"grid"}), 1, terminal_id="t"))


class _Limits:
    ws_subscriptions = 10


class _Sink:
    """The sockets of all subscribers."""

    is_open = has_room = True

    def __init__(self, framing: Callable[[bytes], bytes]) -> None:
        self.framing = framing
        self.missing = 0
        self.has_all = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.missing -= 1
        if not self.missing:
            self.has_all.set()


class _OneTerminal:
    """A registry with one terminal, of which no object is made."""

    def __init__(self) -> None:
        from terrazzo.listeners import Listeners

        self.sharing_changes: Any = Listeners("sharing")
        self.terminal_changes: Any = Listeners("terminals")

    def terminal_of_series(self, name: str) -> Any:
        return SimpleNamespace(uid=name, company_id=1)

    terminal = terminal_of_series

    def terminal_objects(self, uid: str) -> tuple[int, ...]:
        return ()


async def gateway(found: Counter[str], *, request: dict[str, Any], has_terminal: bool = True, rounds: int = 100) -> int:
    """One request again and again on one connection over HTTP, where a terminal has reported or none is; how many."""
    async with _platform() as (reader, writer, token, port):
        if has_terminal:
            await _add_terminal(reader, writer, token)
            await _report(port)

        async def go_round() -> None:
            assert b'"code":200' in await _call(reader, writer, request, token)

        await _repeat(go_round, 10)
        with counted(found):
            await _repeat(go_round, rounds)
    return rounds


async def logins(found: Counter[str], *, protocol: int, rounds: int = 100) -> int:
    """A terminal connects, logs in with its pin and hangs up, again and again; how often."""
    from mqtt_bytes import login

    async with _platform() as (reader, writer, token, port):
        await _add_terminal(reader, writer, token)
        packet = login(*_TERMINAL, protocol=protocol)

        async def go_round() -> None:
            answers, to_broker = await asyncio.open_connection("127.0.0.1", port)
            to_broker.write(packet)
            assert (await answers.readexactly(4))[0] == 0x20
            to_broker.write(b"\xe0\x00")
            await answers.read()
            to_broker.close()
            await to_broker.wait_closed()

        await _repeat(go_round, 10)
        with counted(found):
            await _repeat(go_round, rounds)
    return rounds


async def _add_terminal(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    uid, username, pin = _TERMINAL
    made = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    config = await _call(reader, writer, {"action": "create_terminal_config", "name": "c", **made}, token)
    made |= {"config_id": json.loads(config)["result"]["uid"], "access": "all", "topic": "all", "type": "Other"}
    made |= {"uid": uid, "name": uid, "mode": "pwd", "username": username, "pin": pin}
    request = {"action": "create_terminal", **made}
    assert b'"code":200' in await _call(reader, writer, request, token)


async def _report(port: int) -> None:
    """So many readings of the terminal that a page of them is full."""
    from mqtt_bytes import field, frame, login

    answers, to_broker = await asyncio.open_connection("127.0.0.1", port)
    to_broker.write(login(*_TERMINAL, protocol=4))
    await answers.readexactly(4)
    for number in range(1, 26):
        to_broker.write(frame(0x32, field(f"g/{_TERMINAL[0]}/r"), number.to_bytes(2, "big"), REPORT))
        assert (await answers.readexactly(4))[0] == 0x40
    to_broker.close()
    await to_broker.wait_closed()


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: dict[str, Any], token: str = ""
) -> bytes:
    """The body of the gateway's answer."""
    body = json.dumps(request).encode()
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST /apiproxy/api HTTP/1.1\r\nHost: x\r\n{authorization}Content-Length: {len(body)}"
    return await _ask(reader, writer, head.encode() + b"\r\nContent-Type: application/json\r\n\r\n" + body)


@asynccontextmanager
async def _platform() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, str, int]]:
    from own_platform import PASSWORD, own_platform

    _have_looks_wait()
    with tempfile.TemporaryDirectory() as folder:
        async with own_platform(Path(folder)) as (_, addresses):
            host, _, port = addresses.http.rpartition("/")[2].rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            given = {"action": "login", "username": "admin", "password": PASSWORD}
            token = json.loads(await _call(reader, writer, given))["result"]["token"]
            yield reader, writer, token, addresses.mqtt_port
            writer.close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: bytes) -> bytes:
    writer.write(asked)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    return await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r")[0]))


def _take_time(module: str, slice_s: str) -> None:
    """No slice of the loop is over while steps are counted, which takes a hundred times as long."""
    setattr(sys.modules[module], slice_s, 1e9)


def _have_looks_wait() -> None:
    """What is looked at by the clock is not, while steps are counted: it is no part of a request."""
    for module, between_s in (
        ("terrazzo.runtime.loop_watch", "BEAT_S"),
        ("terrazzo.runtime.assembly.memory", "LOOK_S"),
    ):
        with suppress(ImportError):
            setattr(import_module(module), between_s, 1e9)
    with suppress(ImportError, AttributeError):
        supervisor = import_module("terrazzo.runtime.supervisor").Supervisor
        repeat = supervisor.repeat
        supervisor.repeat = lambda self, name, _interval_s, *given, **more: repeat(self, name, 1e9, *given, **more)


async def _repeat(go_round: Callable[[], Awaitable[None]], rounds: int) -> None:
    for _ in range(rounds):
        await go_round()


WAYS: dict[str, Callable[[Counter[str]], Awaitable[int]]] = {
    "broker, QoS 0, one by one": lambda found: broker(found, qos=0, batch=1),
    "broker, QoS 0, 16 in a read": lambda found: broker(found, qos=0, batch=16),
    "broker, QoS 1, one by one": lambda found: broker(found, qos=1, batch=1),
    "broker, QoS 1, 16 in a read": lambda found: broker(found, qos=1, batch=16),
    "broker, QoS 0, to 200, 16 in a read": lambda found: broker(found, qos=0, batch=16, receivers=200, rounds=20),
    "broker, QoS 1, to 200, 16 in a read": lambda found: broker(found, qos=1, batch=16, receivers=200, rounds=20),
    "ingest, one by one": lambda found: ingest(found, mapped=False, batch=1),
    "ingest, 20 in a read": lambda found: ingest(found, mapped=False, batch=20),
    "ingest, 200 in a read": lambda found: ingest(found, mapped=False, batch=200),
    "mapping, one by one": lambda found: ingest(found, mapped=True, batch=1),
    "mapping, 20 in a read": lambda found: ingest(found, mapped=True, batch=20),
    "mapping, 200 in a read": lambda found: ingest(found, mapped=True, batch=200),
    "live, WebSocket, 1 subscriber": lambda found: live(found, subscribers=1, framing="as_message"),
    "live, WebSocket, 50 subscribers": lambda found: live(found, subscribers=50, framing="as_message"),
    "live, TCP, 50 subscribers": lambda found: live(found, subscribers=50, framing="as_line"),
    "login, MQTT 3.1.1": lambda found: logins(found, protocol=4),
    "login, MQTT 5": lambda found: logins(found, protocol=5),
    "gateway, ping": lambda found: gateway(found, request={"action": "ping"}),
    "gateway, a terminal": lambda found: gateway(found, request={"action": "get_terminal_item", "uid": "t"}),
    "gateway, the latest record": lambda found: gateway(
        found, request={"action": "get_last_grid", "terminal_id": "t", "topic": ["r"]}
    ),
    "gateway, a page of records": lambda found: gateway(found, request={"action": "get_grid_list", **_PAGE}),
    "gateway, a page by key": lambda found: gateway(
        found, request={"action": "get_terminal_list", "after": ""}, has_terminal=False
    ),
}


def count(name: str, *, functions: int) -> dict[str, Any]:
    """Bytecodes a message on one way, in all and of the functions that cost most."""
    import uvloop

    async def run() -> dict[str, Any]:
        found: Counter[str] = Counter()
        messages = await WAYS[name](found)
        most = {function: steps / messages for function, steps in found.most_common(functions)}
        return {"steps": found.total() / messages, "most": most}

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


def count_apart(checkout: Path, name: str, *, functions: int) -> dict[str, Any]:
    """The same in a process of its own, with the code of a checkout."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(checkout / package) for package in PACKAGES)}
    command = [sys.executable, str(HERE), "--way", name, "--by", str(functions)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{checkout}: {name}:\n{ended.stderr}")
    return dict(json.loads(ended.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="ways with this in their names")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--by", type=int, default=0, metavar="FUNCTIONS")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        print(json.dumps(count(arguments.way, functions=arguments.by)))
        return
    for name in [name for name in WAYS if arguments.only in name]:
        here = count_apart(HERE.parents[1], name, functions=arguments.by)
        row = f"| {name} | {here['steps']:,.1f} |"
        if arguments.against:
            there = count_apart(arguments.against, name, functions=0)["steps"]
            row = f"| {name} | {there:,.1f} | {here['steps']:,.1f} | {here['steps'] / there:.3f} |"
        print(row, flush=True)
        for function, steps in here["most"].items():
            print(f"{steps:>12,.1f}  {function}")


if __name__ == "__main__":
    main()
