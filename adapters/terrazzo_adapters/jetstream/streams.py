"""Makes streams where there are none, and refuses those that are set up otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from terrazzo.ports.stream import LogUnavailable, LogUnusable
from terrazzo_adapters.jetstream.connection import Connection, Refused

_NOT_FOUND = 10_059
_IN_USE = 10_058  # another process was faster, with other settings
_NO_REPLICAS = {10_074, 10_005}  # more replicas than one server has, or than there are servers
_OFFLINE = "peer offline"  # among the reasons of the same answer, as the server words them
_TOO_LITTLE_ROOM = {10_047, 10_028}


async def make_stream(
    connection: Connection, name: str, settings: Mapping[str, Any], *, room: str = "stream.log_gib", least: int = 0
) -> dict[str, Any]:
    """The information about a stream, made now where it was not there; ``room``: the key of how much it may have.

    ``least``: bytes that are enough where the servers have less room than it may have; 0: it is to have all.

    Raises:
        LogUnusable: it can't be made, or is set up otherwise; says how.
        LogUnavailable: the servers don't answer, or some of those that are needed are away.
    """
    info = await find_stream(connection, name)
    if info is None:
        info = await _create(connection, name, settings, room, least)
    check_stream(name, settings, info["config"])
    return info


async def find_stream(connection: Connection, name: str) -> dict[str, Any] | None:
    """The information about a stream, None where there is none."""
    try:
        return await connection.ask(f"STREAM.INFO.{name}")
    except Refused as error:
        if error.code == _NOT_FOUND:
            return None
        raise LogUnusable(f"stream.url: {error}") from None


async def _create(
    connection: Connection, name: str, settings: Mapping[str, Any], room: str, least: int
) -> dict[str, Any]:
    try:
        return await connection.ask(f"STREAM.CREATE.{name}", {"name": name, **settings})
    except Refused as error:
        if error.code == _IN_USE and (info := await find_stream(connection, name)) is not None:
            return info
        if error.code in _NO_REPLICAS and _OFFLINE in error.text:  # for now: they have just begun, or begin again
            raise LogUnavailable(f"stream.replicas: a server that is to have one is away: {error.text}") from None
        if error.code in _NO_REPLICAS:
            what = f"{settings['num_replicas']} replicas need as many servers, each with JetStream"
            raise LogUnusable(f"stream.replicas: {what}: {error.text}") from None
        if error.code in _TOO_LITTLE_ROOM and 0 < least < settings["max_bytes"]:  # no more: others need room, too
            return await _create(connection, name, {**settings, "max_bytes": least}, room, least)
        if error.code in _TOO_LITTLE_ROOM:
            raise LogUnusable(f"{room}: the servers have less room: {error.text}") from None
        raise LogUnusable(f"stream.url: the stream {name} can't be made: {error.text}") from None


def check_stream(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuses a stream in which what is acknowledged could be lost, or that would forget by itself.

    Raises:
        LogUnusable: it is set up otherwise; says how.
    """
    for key, value in wanted.items():
        has = found.get(key)
        if key == "num_replicas":
            if int(has or 0) < value:
                advice = f"nats stream edit {name} --replicas {value}, or set stream.replicas"
                raise LogUnusable(f"stream.replicas: the stream {name} has {has}, {value} are asked for: {advice}")
        elif key != "max_bytes" and has != value:
            raise LogUnusable(f"stream.url: the stream {name} has {key} = {has!r}, expected {value!r}")
