"""A client's session: login and renewal of the token, actions, component paths and streams; without I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from terrazzo.client.errors import ActionError
from terrazzo.client.exchange import (
    NOT_AUTHENTICATED,
    Request,
    Response,
    Retries,
    Steps,
    encode_query,
    exchange,
    parse_envelope,
    result_of,
)

GATEWAY_PATH = "/apiproxy/api"
DEFAULT_URL = "http://127.0.0.1:31507"
_JSON = {"Content-Type": "application/json"}


class Session:
    """The platform's address, the credentials, and the token in use."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        username: str | None = None,
        password: str | None = None,
        token: str | None = None,
        retries: Retries | None = None,
    ) -> None:
        parsed = urlsplit(url)
        if parsed.scheme not in ("http", "https") or not parsed.hostname:
            raise ValueError(f"url: expected http://host:port or https://host:port, got {url!r}")
        self.url = url.rstrip("/")
        self.base = parsed.path.rstrip("/")  # the path of the platform behind a proxy
        self.token = token
        self.username, self.password = username, password
        self.retries = retries or Retries()

    def login(self, username: str | None = None, password: str | None = None) -> Steps[dict[str, Any]]:
        """Logs in with these credentials, which are used from now on; returns the user's record."""
        self.username = username if username is not None else self.username
        self.password = password if password is not None else self.password
        fields = {"username": self.username, "password": self.password}
        _, envelope = yield from self._send(_action("login", fields, None))
        user: dict[str, Any] = result_of(envelope)
        self.token = user["token"]
        return user

    def logout(self) -> Steps[None]:
        """Revokes the token; forgets the credentials too, so that nothing logs in again by itself."""
        yield from self.call("logout")
        self.token = self.username = self.password = None

    def call(self, action: str, fields: Mapping[str, Any] | None = None) -> Steps[Any]:
        """The result of an action.

        Raises:
            ActionError: the code isn't 200.
        """
        response, envelope = yield from self._ask(lambda token: _action(action, fields or {}, token))
        return result_of(envelope, response)

    def ask(self, action: str, fields: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """The whole envelope of an action, whatever its code."""
        _, envelope = yield from self._ask(lambda token: _action(action, fields, token))
        return envelope

    def component(self, method: str, path: str, query: Mapping[str, Any], body: Any = None) -> Steps[Any]:
        """The result of a component path; ``body`` is sent as JSON."""
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else _JSON
        target = encode_query(path, query)
        response, envelope = yield from self._ask(
            lambda token: Request(method=method, target=target, headers=_signed(headers, token), body=content)
        )
        return result_of(envelope, response)

    def stream(self, request: Request) -> Steps[Response]:
        """A successful answer whose body has not been read.

        Raises:
            ActionError: the platform refused.
        """
        token = yield from self.require_token()
        response: Response | None = None
        for last in (False, True):
            signed = replace(request, headers=_signed(request.headers, token), streams=True)
            response = yield from exchange(signed, self.retries)
            if response.stream is not None:
                return response
            envelope = parse_envelope(response.body, status=response.status)
            if last or not self._may_renew(envelope):
                break
            token = yield from self.renew(token)
        assert response is not None
        result_of(envelope, response)
        raise ActionError(envelope["code"], "success", "expected a stream")

    def require_token(self) -> Steps[str | None]:
        """The token in use; logs in first if there is none yet."""
        if self.token is None and self.username is not None:
            yield from self.login()
        return self.token

    def renew(self, old: str | None) -> Steps[str | None]:
        """A token other than ``old``: one that another task has fetched meanwhile, or one of a new login."""
        if self.token == old:
            yield from self.login()
        return self.token

    def _ask(self, build: Any) -> Steps[tuple[Response, dict[str, Any]]]:
        """The answer and envelope of a request; repeated once with a new token if the old one has expired."""
        token = yield from self.require_token()
        response, envelope = yield from self._send(build(token))
        if self._may_renew(envelope):
            token = yield from self.renew(token)
            response, envelope = yield from self._send(build(token))
        return response, envelope

    def _may_renew(self, envelope: Mapping[str, Any]) -> bool:
        return bool(envelope["code"] == NOT_AUTHENTICATED and self.username is not None)

    def _send(self, request: Request) -> Steps[tuple[Response, dict[str, Any]]]:
        response = yield from exchange(request, self.retries)
        return response, parse_envelope(response.body, status=response.status)


def _action(name: str, fields: Mapping[str, Any], token: str | None) -> Request:
    body = json.dumps({"action": name, **fields}, ensure_ascii=False).encode()
    return Request(method="POST", target=GATEWAY_PATH, headers=_signed(_JSON, token), body=body)


def _signed(headers: Mapping[str, str], token: str | None) -> dict[str, str]:
    return {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
