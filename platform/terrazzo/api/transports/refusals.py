"""Refusals of what no operation has seen: their sentences keep code and parameters on the way through aiohttp."""

from __future__ import annotations

from aiohttp import web

from terrazzo.api.kernel.envelope import BAD_PARAMETER, UNREAD, Failure
from terrazzo.reasons import reason_of


def refused_with(refusal: web.HTTPException, told: str) -> web.HTTPException:
    """The same refusal with a sentence, which ``told_by`` finds; aiohttp would keep the text alone."""
    refusal.args = (told,)
    return refusal


def encode_refusal(status: int, info: str) -> bytes:
    """The body that a request gets which no handler has seen."""
    return UNREAD.failure(Failure(BAD_PARAMETER, info, status, reason=reason_of(info))).body
