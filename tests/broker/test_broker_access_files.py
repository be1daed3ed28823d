"""Users and rights from files: what lines are taken, what they allow, and what becomes of sessions."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raw_client import RawClient, field, frame, publish_4, subscribe_4
from terrazzo_broker import Broker, BrokerSettings
from terrazzo_broker.access import password_check
from terrazzo_broker.access.acl_file import Access, read_acl
from terrazzo_broker.access.errors import AccessFileError
from terrazzo_broker.access.file_hooks import FileHooks
from terrazzo_broker.access.password_check import PasswordCheck, TooManyChecks
from terrazzo_broker.access.password_file import Passwords, read_passwords
from terrazzo_broker.access.password_hash import MAX_ITERATIONS, PasswordHash, parse_hash
from terrazzo_broker.persistence import DiskStorage
from terrazzo_broker.storage import MemoryStorage, Storage

SALT = b"twelve bytes"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def pbkdf2(password: str, iterations: int = 101) -> str:
    """A hash of kind 7, as mosquitto_passwd writes it."""
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), SALT, iterations)
    return f"$7${iterations}${b64(SALT)}${b64(digest)}"


def sha512(password: str) -> str:
    """A hash of kind 6."""
    return f"$6${b64(SALT)}${b64(hashlib.sha512(password.encode() + SALT).digest())}"


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("hashed", [sha512, pbkdf2])
def test_hashes(hashed: Any) -> None:
    found = parse_hash(hashed("right"))
    assert found.matches(b"right")
    assert not any(found.matches(each) for each in (b"wrong", b"", b"right "))


BAD_HASHES = [
    ("", "expected $6$"),
    ("plain", "expected $6$"),
    ("$5$a$b", "expected $6$"),
    ("$6$YQ==", "expected $6$"),
    ("$7$YQ==$YQ==", "expected $6$"),
    ("x$6$YQ==$YQ==", "expected $6$"),
    (f"$6$*${b64(bytes(64))}", "salt: not base64"),
    (f"$6$${b64(bytes(64))}", "salt: expected 1 to 1024 bytes"),
    (f"$6${b64(bytes(1025))}${b64(bytes(64))}", "salt: expected 1 to 1024 bytes"),
    (f"$6${b64(SALT)}$YQ==", "hash: expected 64 bytes, got 1"),
    (f"$6${b64(SALT)}$ü", "hash: not base64"),
    *(
        (f"$7${count}${b64(SALT)}${b64(bytes(64))}", f"iterations: expected 1 to {MAX_ITERATIONS}")
        for count in ("0", "-1", "", "x", "1000001", "9" * 5000, "²", "١")
    ),
]


@pytest.mark.parametrize(("text", "reason"), BAD_HASHES, ids=[text[:30] for text, _ in BAD_HASHES])
def test_lines_that_are_no_hash(tmp_path: Path, text: str, reason: str) -> None:
    path = written(tmp_path, "users", f"# one\n\nalice:{sha512('a')}\nbob:{text}\n")
    with pytest.raises(AccessFileError) as error:
        read_passwords(path)
    assert str(error.value).startswith(f"{path}, line 4: {reason}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("alice", "line 1: expected <user>:<hash>"),
        (f":{sha512('a')}", "line 1: expected <user>:<hash>"),
        (f"a:{sha512('a')}\na:{sha512('b')}", "line 2: user 'a' stands there twice"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
    ],
)
def test_lines_that_name_no_user(tmp_path: Path, text: str | bytes, reason: str) -> None:
    with pytest.raises(AccessFileError, match=reason):
        read_passwords(written(tmp_path, "users", text))


def test_blanks_comments_and_line_ends(tmp_path: Path) -> None:
    text = f"# users\r\n\r\n alice : {sha512('a')} \r\n#bob:{sha512('b')}\nbob:{pbkdf2('b')}"
    found = read_passwords(written(tmp_path, "users", text))
    assert len(found) == 2
    assert found.find("alice")[0].matches(b"a")
    assert found.find("bob")[0].matches(b"b")
    assert read_passwords(written(tmp_path, "none", "")).find("anybody")[1] is False


def test_an_unknown_name_costs_what_one_of_the_known_costs() -> None:
    known = {f"u{n}": PasswordHash(0 if n % 2 else 101, bytes((n,)) * 12, bytes(64)) for n in range(20)}
    passwords = Passwords(known)
    found = [passwords.find(f"stranger {n}") for n in range(200)]
    assert not any(is_known for _, is_known in found)
    assert {each.iterations for each, _ in found} == {0, 101}, "as the known ones'"
    assert found == [passwords.find(f"stranger {n}") for n in range(200)], "each name always the same"
    assert passwords.find("\ud800")[1] is False


async def test_dear_checks_run_beside_the_loop_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_check, "MOST_WAITING", 2)
    check, passwords = PasswordCheck(), Passwords({"a": parse_hash(pbkdf2("right", 50_000))})
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    names = [("a", b"right"), ("a", b"wrong"), ("b", b"right")]
    found = await asyncio.gather(*(check.is_right(passwords, *each) for each in names), return_exceptions=True)
    counting.cancel()
    assert found[:2] == [True, False]
    assert isinstance(found[2], TooManyChecks)
    assert turns > 3, "the loop went on meanwhile"
    assert await check.is_right(passwords, "b", b"right") is False
    check.close()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("topics read a", "expected topic, user or pattern"),
        ("topic", "no topic"),
        ("topic read ", "'read' is not a topic filter|no topic"),
        ("topic  ", "no topic"),
        ("topic raed a", "expected read, write, readwrite or deny, got 'raed'"),
        ("topic READ a", "expected read, write, readwrite or deny, got 'READ'"),
        ("topic read a/#/b", "'a/#/b' is not a topic filter"),
        ("topic a+", "'a\\+' is not a topic filter"),
        ("pattern %c#", "'%c#' is not a topic filter"),
        ("user", "user: no name"),
        ("user  ", "user: no name"),
    ],
)
def test_lines_that_are_no_rights(tmp_path: Path, line: str, reason: str) -> None:
    path = written(tmp_path, "acl", f"# rights\ntopic read fine\n{line}\n")
    if line == "topic read ":  # trimmed, it is the topic "read"
        assert read_acl(path).allows(Access.READ, "read", username=None, client_id="c")
        return
    with pytest.raises(AccessFileError, match=f"acl, line 3: ({reason})"):
        read_acl(path)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_by_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    for read in (read_acl, read_passwords):
        try:
            read(path)
        except AccessFileError as error:
            assert str(error).startswith(str(path))  # noqa: PT017 - either outcome is right


@given(st.text("ab/%cu", max_size=12), st.text("a%cu/+#", max_size=6), st.none() | st.text("a%cu/+#", max_size=6))
def test_names_are_put_in_once_and_never_widen(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, client_id: str, username: str | None
) -> None:
    """What a client calls itself gives it no wildcard, and no further pattern."""
    path = tmp_path_factory.getbasetemp() / "pattern"
    path.write_text(f"pattern read {pattern or 'a'}")
    try:
        acl = read_acl(path)
    except AccessFileError:
        return
    if any(mark in (client_id + (username or "")) for mark in "+#"):
        assert not acl.allows(Access.READ, "a", username=username, client_id=client_id)
        return
    if "%u" in pattern and username is None:
        return
    topic = "".join({"%c": client_id, "%u": username or ""}.get(part, part) for part in _split_at_marks(pattern or "a"))
    if topic and not topic.startswith("$"):
        assert acl.allows(Access.READ, topic, username=username, client_id=client_id)


def _split_at_marks(pattern: str) -> list[str]:
    parts, at = [], 0
    while at < len(pattern):
        size = 2 if pattern[at : at + 2] in ("%c", "%u") else 1
        parts.append(pattern[at : at + size])
        at += size
    return parts


# The broker with them


USERS = "".join(f"{name}:{sha512(name)}\n" for name in ("root", "alice", "bob"))
RIGHTS = "user root\ntopic #\nuser alice\ntopic news/#\nuser bob\ntopic mail\n"


def connect(client_id: str, user: str, *, clean: bool = True) -> bytes:
    flags = bytes((4, 0xC0 | 2 * clean))
    return frame(0x10, field("MQTT"), flags, b"\0\0", field(client_id), field(user), field(user))


@asynccontextmanager
async def open_broker(folder: Path, storage: Storage | None = None) -> AsyncIterator[tuple[FileHooks, int]]:
    written(folder, "users", USERS)
    written(folder, "acl", RIGHTS)
    hooks = FileHooks(password_file=folder / "users", acl_file=folder / "acl", anonymous=False)
    broker = Broker(BrokerSettings(sys_interval_s=0), hooks, storage or MemoryStorage(), may_receive=hooks.may_receive)
    hooks.attach(broker)
    try:
        yield hooks, await broker.listen_tcp("127.0.0.1", 0)
    finally:
        await broker.close(1.0)
        hooks.close()


async def enter(port: int, client_id: str, user: str, *, clean: bool = True) -> tuple[RawClient, bytes]:
    client = await RawClient.open(port, 4)
    client.send(connect(client_id, user, clean=clean))
    first, body = await client.receive()
    assert first == 0x20
    return client, body


async def leave_with_subscription(port: int, user: str) -> None:
    client, code = await enter(port, "shared", user, clean=False)
    assert code == b"\0\0"
    client.send(subscribe_4(1, ("#", 1)))
    assert await client.receive() == (0x90, b"\0\1\1")
    await client.finish()


async def send_as_root(port: int, *topics: str) -> None:
    root, _ = await enter(port, "root", "root")
    root.send(*(publish_4(topic, b"", qos=1, packet_id=number) for number, topic in enumerate(topics, 1)))
    for _ in topics:
        await root.receive()
    await root.finish()


async def received(client: RawClient) -> list[str]:
    client.send(b"\xc0\x00")
    found = []
    while (packet := await client.receive()) != (0xD0, b""):
        size = int.from_bytes(packet[1][:2], "big")
        found.append(packet[1][2 : 2 + size].decode())
    return found


async def test_another_user_of_a_client_id_gets_nothing_that_was_the_firsts(tmp_path: Path) -> None:
    async with open_broker(tmp_path) as (_, port):
        await leave_with_subscription(port, "alice")
        await send_as_root(port, "news/1", "mail")
        other, code = await enter(port, "shared", "bob", clean=False)
        assert code == b"\1\0", "the session is the client id's"
        assert await received(other) == []
        await send_as_root(port, "news/2", "mail")
        assert await received(other) == ["mail"]
        await other.finish()


async def test_the_first_user_gets_it(tmp_path: Path) -> None:
    async with open_broker(tmp_path) as (_, port):
        await leave_with_subscription(port, "alice")
        await send_as_root(port, "news/1", "mail")
        again, _ = await enter(port, "shared", "alice", clean=False)
        assert await received(again) == ["news/1"]
        await again.finish()


async def test_what_waits_is_looked_at_again_after_a_restart(tmp_path: Path) -> None:
    """Whose session it is is not on disk: messages wait, and those that the user may not read are dropped."""
    async with open_broker(tmp_path, DiskStorage(tmp_path / "data")) as (_, port):
        await leave_with_subscription(port, "alice")
    async with open_broker(tmp_path, DiskStorage(tmp_path / "data")) as (_, port):
        await send_as_root(port, "news/1", "mail")
        again, code = await enter(port, "shared", "alice", clean=False)
        assert code == b"\1\0"
        assert await received(again) == ["news/1"]
        await send_as_root(port, "mail", "news/2")
        assert await received(again) == ["news/2"]
        await again.finish()


async def test_rights_taken_away_hold_back_what_waits(tmp_path: Path) -> None:
    async with open_broker(tmp_path) as (hooks, port):
        await leave_with_subscription(port, "alice")
        await send_as_root(port, "news/1", "news/2")
        written(tmp_path, "acl", RIGHTS.replace("news/#", "news/2"))
        assert hooks.reload() == 0
        again, _ = await enter(port, "shared", "alice", clean=False)
        assert await received(again) == ["news/2"]
        await again.finish()


async def test_retained_messages_go_to_who_may_read_them(tmp_path: Path) -> None:
    async with open_broker(tmp_path) as (_, port):
        root, _ = await enter(port, "root", "root")
        root.send(publish_4("news/1", b"x", retain=True), publish_4("mail", b"x", retain=True))
        await root.silence()
        for user, topics in (("alice", ["news/1"]), ("bob", ["mail"])):
            client, _ = await enter(port, user, user)
            client.send(subscribe_4(1, ("#", 0)))
            await client.receive()
            assert await received(client) == topics
            await client.finish()
        await root.finish()


async def test_a_will_needs_the_right_to_write(tmp_path: Path) -> None:
    async with open_broker(tmp_path) as (_, port):
        root, _ = await enter(port, "root", "root")
        root.send(subscribe_4(1, ("#", 0)))
        await root.receive()
        for topic in ("mail", "news/1"):
            dying = await RawClient.open(port, 4)
            will = field(topic) + field("gone")
            dying.send(
                frame(0x10, field("MQTT"), b"\4\xc6", b"\0\0", field("dying"), will, field("alice"), field("alice"))
            )
            await dying.receive()
            dying.writer.transport.abort()
            await dying.finish()
        assert await root.receive() == (0x30, field("news/1") + b"gone")
        await root.finish()


# The command


@pytest.mark.parametrize(
    ("option", "text", "reason"),
    [
        ("--acl", "topic read ok\nnonsense\n", "line 2: expected topic, user or pattern"),
        ("--password-file", "alice:in-the-clear\n", "line 1: expected $6$"),
        ("--password-file", None, "No such file or directory"),
    ],
)
def test_a_bad_file_ends_the_start(tmp_path: Path, option: str, text: str | None, reason: str) -> None:
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)
    command = [sys.executable, "-m", "terrazzo_broker", "--port", "0", option, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()  # the log's are written by a thread of their own
    assert any(each.startswith(f"terrazzo_broker: {path}") for each in lines)
    assert "Traceback" not in done.stderr
    assert reason in done.stderr
    assert "in-the-clear" not in done.stderr
