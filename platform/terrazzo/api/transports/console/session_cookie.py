"""Sessions of browsers: a token in a cookie that no script reads, and that only pages of this server can use.

A page asks for it with the header ``Terrazzo-Session: cookie`` when it logs in. The cookie alone is no proof: other
pages of the same host, at another port, share it [RFC 6265, 8.5]. So each request that shows it has to come from a page
of this server, which is seen by that header (other origins' pages may not send it), or where scripts have no say (an
image, a download, a WebSocket) by what the browser itself says of where the request comes from.
"""

from __future__ import annotations

import re
from contextlib import suppress
from http.cookies import CookieError

from aiohttp import hdrs, web

from terrazzo.access.tokens import MAX_TOKEN
from terrazzo.api.kernel.operation import Caller, CookieSession
from terrazzo.api.kernel.services import TokenService
from terrazzo.api.transports.peers.origins import Origins
from terrazzo.errors import NotAuthenticated

HEADER = "Terrazzo-Session"
WANTED = "cookie"

_SITE = "Sec-Fetch-Site"
_READING = ("GET", "HEAD")
_TOKEN = re.compile(r"[A-Za-z0-9_.-]+")
_CALLER = web.RequestKey("cookie_caller", Caller)
_SHOWN = web.RequestKey("cookie_token", str)


class SessionCookies:
    """Reads the cookie of requests, and writes that of responses.

    Args:
        lifetime_s: of the cookie since it was last written.
        instance: tells cookies of several servers of one host apart.
    """

    def __init__(self, tokens: TokenService, origins: Origins, *, lifetime_s: float, instance: str) -> None:
        self._tokens = tokens
        self._origins = origins
        self._lifetime_s = int(lifetime_s)
        self.name = f"terrazzo-{instance}"

    def read(self, request: web.Request, caller: Caller) -> None:
        """Gives a caller who sent no token that of the cookie, if the request comes from a page of this server."""
        is_page = request.headers.get(HEADER) == WANTED
        if is_page:
            caller.session = CookieSession()
            request[_CALLER] = caller
        if caller.token is not None or hdrs.COOKIE not in request.headers:
            return
        token = self._cookie(request)
        if token is None:
            return
        if not self._is_of_own_page(request, is_page):
            self._origins.count_cookie(request)
            return
        caller.token = token
        request[_SHOWN] = token

    async def write(self, request: web.Request, response: web.StreamResponse) -> None:
        """Sets, renews or ends the cookie; for ``on_response_prepare``."""
        caller = request.get(_CALLER)
        given = None if caller is None or caller.session is None else caller.session.given
        shown = request.get(_SHOWN)
        if given is None and shown is not None:
            with suppress(NotAuthenticated):
                given = self._tokens.renewed(shown)
        if given is None:
            return
        age = self._lifetime_s if given else 0
        cookie = f"{self.name}={given}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict"
        response.headers.add(hdrs.SET_COOKIE, cookie + ("; Secure" if self._origins.is_secure(request) else ""))

    def _cookie(self, request: web.Request) -> str | None:
        try:
            token = request.cookies.get(self.name)
        except CookieError:
            return None
        return token if token and len(token) <= MAX_TOKEN and _TOKEN.fullmatch(token) else None

    def _is_of_own_page(self, request: web.Request, is_page: bool) -> bool:
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None and not self._origins.is_own(origin, request):
            return False
        if is_page:
            return True
        if hdrs.UPGRADE in request.headers:
            return origin is not None
        if request.method not in _READING:
            return False
        site = request.headers.get(_SITE)
        if site is not None:
            return site in ("same-origin", "none")
        referer = "/".join(request.headers.get(hdrs.REFERER, "").split("/", 3)[:3])
        return self._origins.is_own(referer, request)


COOKIES = web.AppKey("COOKIES", SessionCookies)
"""Where an application keeps them."""
