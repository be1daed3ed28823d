"""The provider of single sign-on: what it says of itself, its keys, codes for tokens, and what a token has to say.

OpenID Connect Core 1.0 with the authorization code flow and PKCE (RFC 7636). Requests go through the guard of calls to
the outside; the provider's answers are foreign input.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from joserfc import jwt
from joserfc.errors import ClaimError, ExpiredTokenError, JoseError
from joserfc.jwk import KeySet

from terrazzo.config.sso import SsoSection
from terrazzo.errors import NotAuthenticated, Unavailable
from terrazzo.ports.providers import HttpCall, HttpCaller, SendOutcome
from terrazzo.reasons import say

TIMEOUT_S = 10.0
KEPT_S = 3_600  # what the provider says of itself, and its keys
SOONEST_S = 60  # between two looks at its keys, whatever key a token names
LEEWAY_S = 60  # that its clock may be off
MAX_TOKEN = 32_768  # characters of an ID token

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
"""Signatures by a key that the provider keeps to itself; a shared key (HS256) or none would let anybody sign."""

_UNREADABLE = (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What the library raises at what is no token or no key, whoever signed it."""

_WELL_KNOWN = "/.well-known/openid-configuration"
_FORM = "application/x-www-form-urlencoded"


class ProviderSays(NamedTuple):
    """Where the provider is asked, as it says itself."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    is_basic: bool  # whether the client's secret goes into the header


class _Kept(NamedTuple):
    value: Any
    at_us: int


class OidcProvider:
    """The provider of the section ``sso``; methods raise ``Unavailable`` where it doesn't answer, or not as it should.

    Args:
        clock: UTC microseconds.
    """

    def __init__(self, section: SsoSection, caller: HttpCaller, *, clock: Callable[[], int]) -> None:
        self._section = section
        self._caller = caller
        self._clock = clock
        self._says: _Kept | None = None
        self._keys: _Kept | None = None

    async def address(self, *, state: str, nonce: str, verifier: str) -> str:
        """Where the user's browser goes to log in."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._section.client_id,
            "redirect_uri": self._section.redirect_url,
            "scope": self._section.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = (await self._find()).authorization_endpoint
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def claims(self, code: str, *, verifier: str, nonce: str) -> Mapping[str, Any]:
        """What the provider says of the user who came back with this code.

        Raises:
            NotAuthenticated: it refuses the code, or its token is no good; says which claim, and why.
        """
        id_token = await self._exchange(code, verifier)
        token = await self._signed_claims(id_token)
        _check_claims(token, self._section, nonce=nonce, now_s=self._clock() // 1_000_000)
        return token

    async def _exchange(self, code: str, verifier: str) -> str:
        says, section = await self._find(), self._section
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": section.redirect_url,
            "client_id": section.client_id,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": _FORM, "Accept": "application/json"}
        if section.client_secret and says.is_basic:
            pair = f"{quote(section.client_id, safe='')}:{quote(section.client_secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif section.client_secret:
            fields["client_secret"] = section.client_secret
        status, answer = await self._call("POST", says.token_endpoint, headers, urlencode(fields).encode())
        if status != 200:
            raise NotAuthenticated(say("sso_code_refused", why=_text(answer, "error") or status))
        id_token = _text(answer, "id_token")
        if not id_token or len(id_token) > MAX_TOKEN:
            raise Unavailable(say("sso_no_id_token"))
        return id_token

    async def _signed_claims(self, id_token: str) -> dict[str, Any]:
        """The claims of a token that one of the provider's keys has signed; its keys are read again where none has."""
        try:
            return read_claims(id_token, await self._key_set(at_least_as_new=False))
        except NotAuthenticated:
            return read_claims(id_token, await self._key_set(at_least_as_new=True))

    async def _key_set(self, *, at_least_as_new: bool) -> KeySet:
        """The provider's keys; ``at_least_as_new``: read again, unless that was done a moment ago."""
        kept, now = self._keys, self._clock()
        kept_s = SOONEST_S if at_least_as_new else KEPT_S
        if kept is not None and 0 <= now - kept.at_us < kept_s * 1_000_000:
            found: KeySet = kept.value
            return found
        status, answer = await self._call("GET", (await self._find()).jwks_uri, {"Accept": "application/json"})
        keys = answer.get("keys") if status == 200 else None
        if not isinstance(keys, list):
            raise Unavailable(say("sso_no_keys", status=status))
        found = read_keys(keys)
        self._keys = _Kept(found, now)
        return found

    async def _find(self) -> ProviderSays:
        """What the provider says of itself (OpenID Connect Discovery 1.0)."""
        kept, now = self._says, self._clock()
        if kept is not None and 0 <= now - kept.at_us < KEPT_S * 1_000_000:
            found: ProviderSays = kept.value
            return found
        address = self._section.issuer.rstrip("/") + _WELL_KNOWN
        status, answer = await self._call("GET", address, {"Accept": "application/json"})
        if status != 200:
            raise Unavailable(say("sso_issuer_answers", address=address, status=status))
        found = read_provider(answer, self._section.issuer)
        self._says = _Kept(found, now)
        return found

    async def _call(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON object of an answer; what is none is an empty one."""
        call = HttpCall(
            method=method, url=url, headers=headers, body=body, timeout_s=TIMEOUT_S, tls_ca=self._section.tls_ca
        )
        answer = await self._caller.call(call)
        if answer.outcome is not SendOutcome.SENT:
            raise Unavailable(say("sso_provider_silent", why=answer.reason))
        try:
            return answer.status, msgspec.json.decode(answer.body, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError):
            return answer.status, {}


def read_keys(keys: list[Any]) -> KeySet:
    """The public keys among those that a provider has sent.

    Raises:
        Unavailable: one can't be read.
    """
    try:
        return KeySet.import_key_set({"keys": [each for each in keys if _is_public_key(each)]})
    except _UNREADABLE as error:
        raise Unavailable(say("sso_keys_unreadable", why=error)) from None


def read_claims(id_token: str, keys: KeySet) -> dict[str, Any]:
    """The claims of a token that one of these keys has signed.

    Raises:
        NotAuthenticated: none has, or there are none to be read.
    """
    try:
        return dict(jwt.decode(id_token, keys, algorithms=_ALGORITHMS).claims)
    except _UNREADABLE as error:
        why = str(error) or type(error).__name__
        raise NotAuthenticated(say("sso_not_signed", why=why)) from None


def read_provider(answer: Mapping[str, Any], issuer: str) -> ProviderSays:
    """What a provider says of itself.

    Raises:
        Unavailable: it is another issuer, or an address is missing or less protected than the issuer's.
    """
    said = answer.get("issuer")
    if said != issuer:
        raise Unavailable(say("sso_issuer_calls_itself", issuer=issuer, said=said))
    scheme = issuer.partition(":")[0]
    found = {}
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        address = _text(answer, name)
        if not address.startswith(("https://", f"{scheme}://")):
            raise Unavailable(say("sso_wrong_address", name=name, scheme=scheme, got=address))
        found[name] = address
    methods = answer.get("token_endpoint_auth_methods_supported")
    is_basic = not isinstance(methods, list) or "client_secret_basic" in methods
    return ProviderSays(**found, is_basic=is_basic)


def _check_claims(claims: dict[str, Any], section: SsoSection, *, nonce: str, now_s: int) -> None:
    """OpenID Connect Core 1.0, 3.1.3.7. Raises ``NotAuthenticated`` that names the claim."""
    expected = {"iss": section.issuer, "aud": section.client_id, "nonce": nonce}
    options: dict[str, Any] = {name: {"essential": True, "value": value} for name, value in expected.items()}
    registry = jwt.JWTClaimsRegistry(
        now=now_s, leeway=LEEWAY_S, exp={"essential": True}, iat={"essential": True}, sub={"essential": True}, **options
    )
    try:
        registry.validate(claims)
    except ExpiredTokenError:
        raise NotAuthenticated(say("sso_token_expired")) from None
    except ClaimError as error:
        name = error.claim
        got = claims.get(name)
        told = say("sso_claim_missing" if got is None else "sso_claim_wrong", name=name)
        if got is not None and name in ("iss", "aud"):
            told = say("sso_claim_expected", name=name, expected=expected[name], got=got)
        raise NotAuthenticated(told) from None
    parties = claims["aud"]
    if isinstance(parties, list) and len(parties) > 1 and claims.get("azp") != section.client_id:
        raise NotAuthenticated(say("sso_wrong_party", expected=section.client_id, got=claims.get("azp")))


def _is_public_key(key: Any) -> bool:
    return isinstance(key, dict) and key.get("kty") in ("RSA", "EC") and key.get("use", "sig") == "sig"


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""
