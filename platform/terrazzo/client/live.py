"""Live subscriptions over WebSocket, which reconnect and continue where they were."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from terrazzo.client.errors import ActionError, ConnectionLost, NotSent
from terrazzo.client.exchange import NOT_AUTHENTICATED, Steps, parse_envelope, result_of
from terrazzo.client.session import Session

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0

Runner = Callable[[Steps[Any]], Awaitable[Any]]
Connector = Callable[[str | None], Awaitable[aiohttp.ClientWebSocketResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Something that happened. ``seq`` is the number to continue after (``since``)."""

    kind: str
    seq: int
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The frames after ``since`` up to and including ``seq`` are lost.

    ``lost``: how many, None if the platform doesn't know. ``reason``: ``slow``, ``forgotten``, ``restart`` or
    ``unknown``.
    """

    since: int
    seq: int
    lost: int | None
    reason: str


class Live:
    """One subscription, over one connection after the other.

    Args:
        run: performs a session's steps, for logins.
        connect: opens a WebSocket with a token.
        wanted: the fields of the action ``subscribe``.
        since: the number after which to begin; None: begin now.
    """

    def __init__(
        self, session: Session, run: Runner, connect: Connector, wanted: Mapping[str, Any], *, since: int | None
    ) -> None:
        self._session = session
        self._run = run
        self._connect = connect
        self._wanted = wanted
        self._since = since
        self._pause_s = _FIRST_PAUSE_S
        self._was_subscribed = False
        self._has_new_token = False

    async def frames(self) -> AsyncGenerator[Frame | Gap, None]:
        """Yields frames and gaps without end.

        Raises:
            ActionError: the platform refused the subscription, or ended it for good.
            NotSent: the first connection failed; later ones are retried without limit.
        """
        while True:
            token = await self._run(self._session.require_token())
            try:
                async for each in self._connected(token):
                    yield each
            except ActionError as error:
                if error.code != NOT_AUTHENTICATED or self._session.username is None or self._has_new_token:
                    raise
                self._has_new_token = True
                await self._run(self._session.renew(token))
                continue
            except NotSent:
                if not self._was_subscribed:
                    raise
            except ConnectionLost:
                pass  # a connection that ends is what the next one is for
            await asyncio.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    async def _connected(self, token: str | None) -> AsyncIterator[Frame | Gap]:
        socket = await self._connect(token)
        try:
            since = {} if self._since is None else {"since": self._since}
            await socket.send_str(json.dumps({"action": "subscribe", **self._wanted, **since}))
            async for message in socket:
                found = self._take(message)
                if found is not None:
                    self._since = found.seq
                    yield found
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(str(error)) from error
        finally:
            await socket.close()

    def _take(self, message: aiohttp.WSMessage) -> Frame | Gap | None:
        """The frame or gap in a message; None for the answer to ``subscribe``."""
        if message.type is not aiohttp.WSMsgType.TEXT:
            return None
        found = json.loads(message.data)
        if found.get("resp") != "live":
            self._note_subscribed(result_of(parse_envelope(message.data.encode())))
            return None
        if "end" in found:
            raise ActionError(found["end"]["code"], "subscription ended", found["end"]["info"])
        if "gap" in found:
            return Gap(**found["gap"])
        return Frame(kind=found["kind"], seq=found["seq"], data=found["data"])

    def _note_subscribed(self, result: Mapping[str, Any]) -> None:
        """Notes the number from which on nothing is missed: what follows ``seq`` can be asked for again."""
        self._was_subscribed, self._has_new_token = True, False
        self._pause_s = _FIRST_PAUSE_S
        if self._since is None:
            self._since = result["seq"]
