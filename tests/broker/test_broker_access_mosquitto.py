"""Password and access control files beside Mosquitto: the same files and clients, and the same is let through."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from raw_client import Closed, RawClient, field, frame, publish_4, subscribe_4
from running import Mosquitto, ServerProcess
from support import free_port, require_program
from waiting import until

ACL = """\
# who has no user name
topic read news/#
topic write inbox/anonymous
topic  readwrite  both
topic $data/anonymous

user root
topic #
topic readwrite $data/#

user alice
topic read sensors/+/temp
topic deny sensors/secret/temp
topic write sensors/alice/#
topic deny sensors/alice/hidden
topic readwrite with a blank/in it
user bob
topic read news/#
topic deny #
user carol

user alice
topic both

# of everybody
pattern read mail/%u/#
pattern deny mail/%u/private
pattern write from/%c
pattern readwrite pair/%u/%c/%d
pattern read all/#
"""
CHANGED_ACL = """\
user root
topic #
user alice
topic read news/#
topic write from/#
user bob
topic news/#
"""
PASSWORDS = {
    "root": "root-pw",
    "alice": "alice-pw",
    "bob": "bob-pw",
    "carol": "carol-pw",
    "dave": "dave-pw",
    "e/f": "x",
}
OTHERS = {"six": "six-pw", "ümläut": "пароль"}  # with $6$
TOPICS = [
    *(
        "news/1",
        "news",
        "inbox/anonymous",
        "both",
        "$data/anonymous",
        "$data/x",
        "sensors/1/temp",
        "sensors/secret/temp",
    ),
    *(
        "sensors/alice/1",
        "sensors/alice/hidden",
        "mail/alice/1",
        "mail/alice/private",
        "mail/bob/1",
        "mail/e/f/1",
        "mail//1",
    ),
    *("from/anon", "from/x", "pair/alice/x/%d", "all/1", "pair/%u/x/%d", "pair//x/%d", "none", "with a blank/in it"),
]


class Who(NamedTuple):
    """Who connects."""

    client_id: str
    username: str | None = None
    password: str | None = None


WRONG = [
    Who("x", "alice", "bob-pw"),
    Who("x", "alice", ""),
    Who("x", "alice"),
    Who("x", "nobody", "alice-pw"),
]
NAMELESS = [Who("x", ""), Who("x", "", ""), Who("x", "", "alice-pw")]
CLIENTS = [
    Who("anon"),
    Who("a+b"),
    Who("x", "alice", PASSWORDS["alice"]),
    Who("a#b", "alice", PASSWORDS["alice"]),
    Who("x", "bob", PASSWORDS["bob"]),
    Who("x", "carol", PASSWORDS["carol"]),
    Who("x", "dave", PASSWORDS["dave"]),
    Who("x", "e/f", PASSWORDS["e/f"]),
    Who("x", "six", OTHERS["six"]),
    Who("x", "ümläut", OTHERS["ümläut"]),
    *WRONG,
    *NAMELESS,
    Who("a+b", "", ""),
]
Seen = dict[str, Any]
Dial = Callable[..., Awaitable[RawClient]]


class Files:
    """The files of both brokers."""

    def __init__(self, folder: Path) -> None:
        self.passwords, self.acl = folder / "passwords", folder / "acl"
        self.passwords.touch()
        for name, password in PASSWORDS.items():
            self.set_password(name, password)
        for name, password in OTHERS.items():
            self.set_password(name, password, "-H", "sha512")
        self.acl.write_text(ACL)

    def set_password(self, name: str, password: str, *options: str) -> None:
        tool = require_program("mosquitto_passwd")
        subprocess.run([tool, *options, "-b", str(self.passwords), name, password], check=True, capture_output=True)

    def delete(self, name: str) -> None:
        tool = require_program("mosquitto_passwd")
        subprocess.run([tool, "-D", str(self.passwords), name], check=True, capture_output=True)


@contextmanager
def mosquitto(folder: Path, files: Files, *, anonymous: bool) -> Iterator[tuple[ServerProcess, int]]:
    lines = (
        f"allow_anonymous {str(anonymous).lower()}",
        f"password_file {files.passwords}",
        f"acl_file {files.acl}",
        "user root",
        "persistence false",
    )
    port = free_port()
    with Mosquitto(folder, lines=lines, port=port) as server:
        server.wait_ready(lambda: _accepts(port))
        yield server, port


@contextmanager
def ours(folder: Path, files: Files, *, anonymous: bool) -> Iterator[tuple[ServerProcess, int]]:
    port = free_port()
    command = [sys.executable, "-m", "terrazzo_broker", "--port", str(port), "--log-level", "info"]
    command += ["--acl", str(files.acl), "--password-file", str(files.passwords)]
    command += ["--allow-anonymous"] if anonymous else []
    with ServerProcess(command, log=folder / "ours.log") as server:
        server.wait_ready(lambda: _accepts(port))
        yield server, port


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def login(who: Who) -> bytes:
    """A CONNECT of 3.1.1."""
    flags, tail = 2, b""
    if who.username is not None:
        flags, tail = flags | 0x80, field(who.username)
        if who.password is not None:
            flags, tail = flags | 0x40, tail + field(who.password)
    return frame(0x10, field("MQTT"), bytes((4, flags)), b"\0\0", field(who.client_id), tail)


@asynccontextmanager
async def connected(port: int, who: Who) -> AsyncIterator[tuple[RawClient, int]]:
    """A client, and its return code."""
    client = await RawClient.open(port, 4)
    client.send(login(who))
    _, body = await client.receive()
    try:
        yield client, body[1]
    finally:
        await client.finish()


async def take(client: RawClient) -> tuple[list[str], list[str]]:
    """What came up to now, as topics: acknowledgements apart; the broker has handled all that was sent to it before."""
    client.send(b"\xc0\x00")
    found: list[str] = []
    answers: list[str] = []
    while (packet := await client.receive()) != (0xD0, b""):
        first, body = packet
        if first >> 4 == 3:
            size = int.from_bytes(body[:2], "big")
            found.append(body[2 : 2 + size].decode())
        else:
            answers.append(f"{first:02x}")
    return sorted(found), answers


async def observe(port: int, clients: list[Who]) -> Seen:
    """What each of the clients may: return code, what of its publishes arrives, what it is sent."""
    seen: Seen = {}
    async with connected(port, Who("watcher", "root", PASSWORDS["root"])) as (root, code):
        assert code == 0
        root.send(subscribe_4(1, ("#", 0), ("$data/#", 0)))
        await take(root)
        for who in clients:
            async with connected(port, who) as (client, code):
                if code:
                    seen[str(who)] = code
                    continue
                seen[str(who)] = await _rights(root, client)
    return seen


async def _rights(root: RawClient, client: RawClient) -> Seen:
    client.send(subscribe_4(1, ("#", 0), ("$data/#", 0), ("none", 1)))
    suback = await client.receive()
    client.send(*(publish_4(topic, b"w", qos=1, packet_id=number) for number, topic in enumerate(TOPICS, 1)))
    _, answers = await take(client)
    written, _ = await take(root)
    root.send(*(publish_4(topic, b"r") for topic in TOPICS))
    await take(root)
    read, _ = await take(client)
    return {"suback": suback, "acknowledged": len(answers), "written": written, "read": read}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize("anonymous", [True, False])
async def test_the_same_is_let_through(tmp_path: Path, files: Files, *, anonymous: bool) -> None:
    with (
        mosquitto(tmp_path, files, anonymous=anonymous) as (_, theirs),
        ours(tmp_path, files, anonymous=anonymous) as (_, mine),
    ):
        expected, found = await asyncio.gather(observe(theirs, CLIENTS), observe(mine, CLIENTS))
    assert found == expected
    assert [found[str(who)] for who in WRONG] == [5] * len(WRONG)
    if anonymous:
        alice = found[str(CLIENTS[2])]
        assert alice["written"] == ["both", "from/x", "pair/alice/x/%d", "sensors/alice/1", "with a blank/in it"]
        for who in NAMELESS:
            assert found[str(who)]["written"] == ["$data/anonymous", "both", "from/x", "inbox/anonymous"]
    else:
        assert [found[str(who)] for who in NAMELESS] == [5] * len(NAMELESS)


async def test_a_reload_changes_rights_and_ends_who_has_another_password(
    tmp_path: Path, files: Files, dial: Dial
) -> None:
    staying = [Who("anon"), Who("x", "alice", PASSWORDS["alice"]), Who("nameless", "")]
    leaving = [Who("y", "bob", PASSWORDS["bob"]), Who("z", "carol", PASSWORDS["carol"])]
    with (
        mosquitto(tmp_path, files, anonymous=True) as broker,
        ours(tmp_path, files, anonymous=True) as other,
    ):
        found = []
        brokers = [broker, other]
        clients = [[await _open(dial, port, who) for who in [*staying, *leaving]] for _, port in brokers]
        for opened in clients:
            opened[1].send(publish_4("sensors/alice/1", b""), publish_4("from/y", b""))  # grants that are kept
            await take(opened[1])
        files.acl.write_text(CHANGED_ACL)
        files.set_password("bob", "another")
        files.delete("carol")
        for server, _ in brokers:
            server.process.send_signal(signal.SIGHUP)
        for (_, port), (*stayed, bob, carol) in zip(brokers, clients, strict=True):
            for gone in (bob, carol):
                await _closed(gone)
            async with connected(port, Who("watcher", "root", PASSWORDS["root"])) as (root, code):
                assert code == 0
                root.send(subscribe_4(1, ("#", 0), ("$data/#", 0)))
                await take(root)
                found.append([await _rights(root, each) for each in stayed])
            found[-1].append(await observe(port, [Who("y", "bob", "another"), *leaving]))
        assert found[1] == found[0]
        assert [found[1][1][each] for each in ("written", "read")] == [
            ["from/anon", "from/x"],
            ["news", "news/1"],
        ]


async def _open(dial: Dial, port: int, who: Who) -> RawClient:
    client = await dial(None, version=4, port=port)
    client.send(login(who))
    assert await client.receive() == (0x20, b"\0\0")
    client.send(subscribe_4(1, ("#", 0)))
    await client.receive()
    return client


async def _closed(client: RawClient) -> None:
    async def drain() -> None:
        while True:
            await client.receive()

    with pytest.raises(Closed):
        await drain()


async def test_a_bad_file_changes_nothing_and_is_logged(tmp_path: Path, files: Files) -> None:
    alice = Who("x", "alice", PASSWORDS["alice"])
    with ours(tmp_path, files, anonymous=False) as (server, port):
        before = await observe(port, [alice])
        log = tmp_path / "ours.log"
        cases = (
            (files.acl, "topic raed news\n", "acl, line 1: expected read, write, readwrite or deny, got 'raed'"),
            (files.passwords, "\nalice:secret\n", "passwords, line 2: expected $6$"),
        )
        for count, (path, text, reason) in enumerate(cases, 1):
            good = path.read_text()
            path.write_text(text)
            server.process.send_signal(signal.SIGHUP)
            await _logged(log, "users and rights stay as they were", count)
            assert reason in log.read_text()
            assert "secret" not in log.read_text()
            assert await observe(port, [alice]) == before
            path.write_text(good)


async def _logged(log: Path, text: str, count: int) -> None:
    await until(lambda: log.read_text().count(text) >= count)
