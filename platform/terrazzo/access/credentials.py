"""What clients show for who they are: a token or an API key. Implements the gateway's ``TokenService``."""

from __future__ import annotations

from terrazzo.access.api_keys import MARK, ApiKeys, is_api_key
from terrazzo.access.tokens import HeldToken, Tokens
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter
from terrazzo.reasons import say


class Credentials:
    """Checks tokens and API keys. An API key is looked at anew whenever it is used, on an open connection too."""

    def __init__(self, tokens: Tokens, api_keys: ApiKeys) -> None:
        self._tokens = tokens
        self._api_keys = api_keys

    @property
    def version(self) -> int:
        """Rises with all that may make a good token (no API key) a bad one, but for its time."""
        return self._tokens.version

    def verify(self, token: str) -> Actor:
        """Whose it is, as the user is now. No I/O.

        Raises:
            NotAuthenticated: it is no good; says why.
        """
        return self._api_keys.verify(token) if token.startswith(MARK) else self._tokens.verify(token)

    def session(self, token: str) -> str:
        """The first token of a session that begins with a token which was just issued; raises as ``verify`` does."""
        return self._tokens.session(token)

    def renewed(self, token: str) -> str | None:
        """The next token of a session, None where there is none to be had now; raises as ``verify`` does."""
        return None if is_api_key(token) else self._tokens.renewed(token)

    def hold(self, token: str) -> HeldToken:
        """Checks it for a connection that stays; raises as ``verify`` does."""
        if is_api_key(token):
            return HeldToken(token, jti="", user_id=self._api_keys.verify(token).user_id)
        return self._tokens.hold(token)

    def verify_held(self, held: HeldToken) -> Actor:
        """Whose it is; a token may have expired since it was shown, an API key may not. Raises as ``verify`` does."""
        return self._api_keys.verify(held.token) if is_api_key(held.token) else self._tokens.verify_held(held)

    async def revoke(self, token: str, *, held: HeldToken | None = None, address: str = "") -> None:
        """Ends a token, as somebody at ``address`` asks.

        Raises:
            NotAuthenticated: it is no good.
            BadParameter: it is an API key.
        """
        if is_api_key(token):
            raise BadParameter("Authorization", say("is_an_api_key"))
        await self._tokens.revoke(token, held=held, address=address)
