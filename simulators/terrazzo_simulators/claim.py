"""A terminal that nobody has registered asks for its credentials with a claim key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from .link import Inbound, LinkError, LinkOptions
from .paho_link import PahoLink
from .spec import TerminalSpec, parse_spec

CLAIM_USER = "claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Asks with ``key``; ``pool`` runs the blocking TCP connect."""

    key: str
    options: LinkOptions
    pool: Executor
    on_error: Callable[[], None]

    async def ask(self, spec: TerminalSpec) -> TerminalSpec:
        """The terminal with the credentials that it was told, over a connection of its own and a clean session.

        Raises:
            LinkError, OSError, TimeoutError: there was no answer, or none that makes sense.
        """
        link = PahoLink(
            replace(spec, username=CLAIM_USER, mode="pwd"),
            replace(self.options, session_expiry_s=0),
            pool=self.pool,
            on_error=self.on_error,
        )
        told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def take(inbound: Inbound) -> None:
            if not told.done():
                told.set_result(inbound.payload)

        link.on_message = take
        try:
            if not await link.open(self.key):
                raise LinkError("the claim may not subscribe")
            ended = asyncio.create_task(link.closed.wait(), name=f"claim {spec.uid}")
            try:
                async with asyncio.timeout(self.options.timeout_s):
                    waiting: set[asyncio.Future[Any]] = {told, ended}
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
            if not told.done():
                raise LinkError("the claim ended without an answer")
            return provisioned(spec, told.result())
        finally:
            await link.close()


def provisioned(spec: TerminalSpec, payload: bytes) -> TerminalSpec:
    """The terminal with the credentials of an answer. Raises ``LinkError`` for one that makes no sense."""
    try:
        answer = json.loads(payload)
        if answer["Act"] != "Provision":
            raise ValueError(f"Act is {answer['Act']!r:.40}")
        named = {"uid": spec.uid, "username": answer["Username"], "pin": answer["Pin"], "mode": answer["Mode"]}
        told = parse_spec(named)
    except (ValueError, LookupError, TypeError) as error:
        raise LinkError(f"the claim's answer can't be read: {error}") from error
    return replace(spec, username=told.username, pin=told.pin, mode=told.mode)
