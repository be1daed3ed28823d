"""A provider of single sign-on on a loopback port: OpenID Connect with PKCE, signed by PyJWT, lying as a test says."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jwt
from aiohttp import BasicAuth, web
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "terrazzo", "a client's secret: with odd%characters"


def new_key(kid: str) -> tuple[str, rsa.RSAPrivateKey]:
    return kid, rsa.generate_private_key(65537, 2048)


OUR_KEY, OTHER_KEY, NEXT_KEY = new_key("k1"), new_key("k1"), new_key("k2")


@dataclass
class Login:
    """What the browser asked for, and who has logged in there."""

    challenge: str
    nonce: str
    redirect_uri: str
    claims: dict[str, Any]


@dataclass
class Provider:
    """The server; ``async with`` it. ``lies`` replace claims, ``key`` signs, ``says`` what else it says of itself."""

    key: tuple[str, rsa.RSAPrivateKey] = OUR_KEY
    shown: list[tuple[str, rsa.RSAPrivateKey]] = field(default_factory=lambda: [OUR_KEY])
    lies: dict[str, Any] = field(default_factory=dict)
    says: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    jwks_reads: int = 0
    now_s: Any = time.time
    issuer: str = ""
    _logins: dict[str, Login] = field(default_factory=dict)

    async def __aenter__(self) -> Provider:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._handle_discovery)
        app.router.add_get("/jwks", self._handle_keys)
        app.router.add_post("/token", self._handle_token)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.issuer = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def log_in(self, url: str, **claims: Any) -> dict[str, str]:
        """What a browser comes back with that was sent to ``url``, when its user has logged in there."""
        parts = urlsplit(url)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert (parts.path, asked["response_type"], asked["client_id"]) == ("/authorize", "code", CLIENT_ID)
        assert (asked["code_challenge_method"], asked["scope"]) == ("S256", "openid profile email")
        code = secrets.token_urlsafe(8)
        self._logins[code] = Login(asked["code_challenge"], asked["nonce"], asked["redirect_uri"], claims)
        return {"state": asked["state"], "code": code}

    async def _handle_discovery(self, request: web.Request) -> web.Response:
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/jwks"}
        told = {"issuer": self.issuer, **{name: self.issuer + path for name, path in paths.items()}}
        return web.json_response({**told, **self.says})

    async def _handle_keys(self, request: web.Request) -> web.Response:
        self.jwks_reads += 1
        return web.json_response({"keys": [_public(kid, key) for kid, key in self.shown] + [{"kty": "new kind"}]})

    async def _handle_token(self, request: web.Request) -> web.Response:
        form = await request.post()
        login = self._logins.pop(str(form["code"]), None)  # once
        verifier = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        is_known = _client_of(request, form) == (CLIENT_ID, CLIENT_SECRET)
        if login is None or not is_known or (challenge, form["redirect_uri"]) != (login.challenge, login.redirect_uri):
            return web.json_response({"error": "invalid_grant"}, status=400)
        now = int(self.now_s())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "s-1",
            "iat": now,
            "exp": now + 300,
            "nonce": login.nonce,
        }
        kid, key = self.key
        signed: Any = key if self.algorithm.startswith("RS") else "a shared key of thirty-two bytes"
        claims = {name: value for name, value in {**claims, **login.claims, **self.lies}.items() if value is not None}
        algorithm = None if self.algorithm == "none" else self.algorithm
        token = jwt.encode(claims, None if algorithm is None else signed, algorithm=algorithm, headers={"kid": kid})
        return web.json_response({"token_type": "Bearer", "access_token": "x", "id_token": token})


def _client_of(request: web.Request, form: Mapping[str, Any]) -> tuple[str, str]:
    header = request.headers.get("Authorization")
    if header is None:
        return str(form.get("client_id")), str(form.get("client_secret"))
    given = BasicAuth.decode(header)
    return unquote(given.login), unquote(given.password)


def _public(kid: str, key: rsa.RSAPrivateKey) -> dict[str, Any]:
    return {**jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}
