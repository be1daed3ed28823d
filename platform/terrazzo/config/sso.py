"""``[sso]``: single sign-on by OpenID Connect (docs/configuration.md)."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from terrazzo.config.http import is_loopback
from terrazzo.config.values import ConfigError

_Url = Annotated[str, Meta(pattern=r"^(https?://[^\s?#]+)?$")]
_ROLES = ("viewer", "operator", "admin")


class SsoSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[sso]``: the provider, and what its users are here."""

    issuer: _Url = ""
    client_id: str = ""
    client_secret: str = ""
    redirect_url: _Url = ""
    scopes: Annotated[str, Meta(pattern=r"^(.* )?openid( .*)?$")] = "openid profile email"
    username_claim: Annotated[str, Meta(min_length=1)] = "preferred_username"
    role_claim: Annotated[str, Meta(min_length=1)] = "roles"
    roles: dict[str, str] = {}
    default_role: Literal["none", "viewer", "operator", "admin"] = "none"
    company: Annotated[str, Meta(min_length=1)] = "1"
    create_users: bool = False
    allow_private: tuple[str, ...] = ()
    tls_ca: str = ""


def check_sso(section: SsoSection) -> None:
    """Checks what the types of single keys can't.

    Raises:
        ConfigError: names the key.
    """
    for number, network in enumerate(section.allow_private, 1):
        try:
            ip_network(network)
        except ValueError as error:
            raise ConfigError(f"sso.allow_private[{number}]: {error}") from None
    for value, role in section.roles.items():
        if role not in _ROLES:
            raise ConfigError(f"sso.roles.{value}: expected one of {', '.join(_ROLES)}, got {role!r:.100}")
    if not section.issuer:
        return
    for key in ("client_id", "redirect_url"):
        if not getattr(section, key):
            raise ConfigError(f"sso.{key}: is required with sso.issuer")
    parts = urlsplit(section.issuer)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ConfigError(f"sso.issuer: expected https, got {section.issuer!r:.100}")
