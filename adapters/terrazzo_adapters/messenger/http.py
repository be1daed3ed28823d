"""HTTP requests to providers and webhooks: checked addresses, no redirects, no proxies, no cookies, bounded answers."""

from __future__ import annotations

import asyncio
import re
import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from terrazzo.ports.providers import NO_ANSWER, NOT_AN_ADDRESS, HttpAnswer, HttpCall, SendOutcome
from terrazzo.system_trust import system_context
from terrazzo_adapters.messenger.addresses import AddressRefused, Guard, GuardedResolver

MOST_BYTES = 65_536  # of an answer; the rest is left
_CONNECT_S = 10.0
_CHARSET = re.compile(r"""charset="?([\w.:-]{1,40})""", re.IGNORECASE)
_CHARSETS = {"us-ascii", "iso-8859-1", "windows-1252", "gb2312", "gbk", "gb18030", "big5"}  # some others are costly


class _Progress(msgspec.Struct):
    """Whether the request's head has been sent; from then on it may have arrived."""

    has_left: bool = False


class GuardedHttp:
    """Implements ``terrazzo.ports.providers.HttpCaller``.

    Every request has a connection of its own: a kept one could be dead already, and the outcome of a request on it
    unknown.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._trace = aiohttp.TraceConfig()
        self._trace.on_request_headers_sent.append(_on_headers_sent)

    async def call(self, call: HttpCall) -> HttpAnswer:
        """See ``HttpCaller.call``."""
        progress = _Progress()
        try:
            url = URL(call.url)
            self._guard.check(url.host or "")
            return await self._exchange(url, call, progress)
        except AddressRefused as error:
            return HttpAnswer(outcome=SendOutcome.FAILED, reason=str(error))
        except aiohttp.InvalidURL as error:
            return HttpAnswer(outcome=SendOutcome.FAILED, reason=NOT_AN_ADDRESS.format(error=error))
        except TimeoutError:
            return _lost(progress, NO_ANSWER.format(seconds=call.timeout_s))
        except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
            refused = _refusal(error)
            if refused is not None:
                return HttpAnswer(outcome=SendOutcome.FAILED, reason=str(refused))
            return _lost(progress, str(error) or type(error).__name__)

    async def _exchange(self, url: URL, call: HttpCall, progress: _Progress) -> HttpAnswer:
        timeout = aiohttp.ClientTimeout(total=call.timeout_s, sock_connect=min(_CONNECT_S, call.timeout_s))
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._guard),
            use_dns_cache=False,
            force_close=True,
            ssl=await asyncio.to_thread(_context_of, call.tls_ca) if url.scheme == "https" else True,
            socket_factory=self._guard.new_socket,
        )
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trace_configs=[self._trace]
            ) as session,
            session.request(
                call.method,
                url,
                data=call.body,
                headers=dict(call.headers),
                allow_redirects=False,
                trace_request_ctx=progress,
            ) as response,
        ):
            body = await response.content.read(MOST_BYTES)
            text = _text(body, response.headers.get(aiohttp.hdrs.CONTENT_TYPE, ""))
            return HttpAnswer(outcome=SendOutcome.SENT, status=response.status, body=text)


def _text(body: bytes, content_type: str) -> str:
    """The body as text, whatever the answer says of itself; what is no known charset is read as UTF-8."""
    said = _CHARSET.search(content_type)
    charset = said[1].lower() if said else ""
    return body.decode(charset if charset in _CHARSETS else "utf-8", "replace")


async def _on_headers_sent(_session: Any, context: SimpleNamespace, _params: Any) -> None:
    progress: _Progress = context.trace_request_ctx
    progress.has_left = True


def _context_of(tls_ca: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=tls_ca) if tls_ca else system_context()


def _lost(progress: _Progress, reason: str) -> HttpAnswer:
    return HttpAnswer(outcome=SendOutcome.UNKNOWN if progress.has_left else SendOutcome.LATER, reason=reason)


def _refusal(error: BaseException) -> AddressRefused | None:
    """The ``AddressRefused`` that caused an error of aiohttp's connector, if any."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, AddressRefused):
            return seen
        inner = getattr(seen, "os_error", None)
        seen = inner if isinstance(inner, BaseException) and inner is not seen else seen.__cause__
    return None
