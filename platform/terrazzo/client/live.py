"""What happens, as it happens: a subscription over WebSocket that outlives its connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from terrazzo.client.errors import ActionError, ClientError, ConnectionLost, NotSent
from terrazzo.client.exchange import NOT_AUTHENTICATED, Steps, parse_envelope, result_of
from terrazzo.client.session import Session

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0

Runner = Callable[[Steps[Any]], Awaitable[Any]]
Connector = Callable[[str | None], Awaitable[aiohttp.ClientWebSocketResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One thing that happened. ``seq`` is where ``since`` goes on."""

    kind: str
    seq: int | str
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Frames that are lost, in the platform's words: how many, and from where to where as far as it knows."""

    info: Mapping[str, Any]


class Live:
    """One subscription, over one connection after the other.

    Args:
        run: performs a session's steps, for logins.
        connect: opens a WebSocket with a token.
    """

    def __init__(self, session: Session, run: Runner, connect: Connector) -> None:
        self._session = session
        self._run = run
        self._connect = connect
        self._pause_s = _FIRST_PAUSE_S

    async def frames(self, subscription: Mapping[str, Any], since: int | str | None) -> AsyncIterator[Frame | Gap]:
        """Frames and gaps without end.

        Raises:
            ActionError: the platform refused the subscription.
            NotSent: the first connection failed. Later ones are tried again for as long as it takes.
        """
        is_first = True
        while True:
            token = await self._run(self._session.require_token())
            try:
                async for each in self._connected(token, {**subscription, "since": since}):
                    is_first, self._pause_s = False, _FIRST_PAUSE_S
                    if isinstance(each, Frame):
                        since = each.seq
                    yield each
            except ActionError as error:
                if error.code != NOT_AUTHENTICATED or self._session.username is None or self._pause_s > _FIRST_PAUSE_S:
                    raise
                await self._run(self._session.renew(token))
            except ClientError as error:
                if is_first and isinstance(error, NotSent):
                    raise
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    async def _connected(self, token: str | None, subscription: Mapping[str, Any]) -> AsyncIterator[Frame | Gap]:
        socket = await self._connect(token)
        try:
            await socket.send_str(json.dumps(_request(subscription)))
            async for message in socket:
                if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                    found = _read(message.data)
                    if found is not None:
                        yield found
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(str(error)) from error
        finally:
            await socket.close()


def _request(subscription: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in subscription.items() if value is not None}
    return {"action": "subscribe", **given}


def _read(message: str | bytes) -> Frame | Gap | None:
    """A frame, a gap, or nothing for an answer to what was asked; ``ActionError`` for a refusal."""
    envelope = json.loads(message)
    if envelope.get("resp") != "live":
        result_of(parse_envelope(message if isinstance(message, bytes) else message.encode()))
        return None
    if "gap" in envelope:
        return Gap(info=envelope["gap"])
    return Frame(kind=envelope["kind"], seq=envelope["seq"], data=envelope["data"])
