"""Reads of the servers' monitoring whether they sync before they acknowledge, which their protocol doesn't say."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec

from terrazzo.ports.stream import LogUnusable
from terrazzo.system_trust import system_context
from terrazzo_adapters.jetstream.settings import JetStreamSettings

_TIMEOUT = aiohttp.ClientTimeout(total=5)
_MOST_BYTES = 1 << 20


async def check_servers(settings: JetStreamSettings) -> str:
    """What is known of the servers' syncing, for operators: that each does, or that it is unverified.

    Raises:
        LogUnusable: a server acknowledges before it has synced, or its monitoring can't be read.
    """
    monitors = settings.monitors
    if not monitors:
        return "unverified: stream.monitor_url is not set, so nobody knows whether the log syncs what it acknowledges"
    is_tls = any(each.startswith("https:") for each in monitors)
    connector = aiohttp.TCPConnector(ssl=system_context() if is_tls else True)
    async with aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT) as session:
        for monitor in monitors:
            _check_sync(monitor, await _read(session, monitor))
    if len(monitors) < settings.replicas:
        return f"unverified: stream.monitor_url names {len(monitors)} servers, stream.replicas are {settings.replicas}"
    return f"verified: {len(monitors)} of {len(monitors)} servers sync what they acknowledge"


async def _read(session: aiohttp.ClientSession, monitor: str) -> dict[str, Any]:
    address = monitor.rstrip("/") + "/jsz?config=1"
    try:
        async with session.get(address) as answer:
            body = await answer.content.read(_MOST_BYTES)
            if answer.status != 200:
                raise LogUnusable(f"stream.monitor_url: {address} answers {answer.status}")
            return msgspec.json.decode(body, type=dict[str, Any])
    except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError) as error:
        raise LogUnusable(f"stream.monitor_url: {address} can't be read: {error or type(error).__name__}") from None


def _check_sync(monitor: str, told: dict[str, Any]) -> None:
    config = told.get("config")
    if not isinstance(config, dict):
        raise LogUnusable(f"stream.monitor_url: {monitor} has no JetStream")
    if config.get("sync_always") is not True:
        seconds = int(config.get("sync_interval") or 0) / 1e9
        advice = "set jetstream { sync_interval: always } in the server's configuration"
        raise LogUnusable(f"stream.monitor_url: {monitor} syncs every {seconds:g} s, not before it answers: {advice}")
