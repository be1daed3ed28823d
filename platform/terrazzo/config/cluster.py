"""The configuration's sections ``[stream]`` and ``[cluster]``: several nodes around one replicated log."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from terrazzo.config.values import ConfigError
from terrazzo.userinfo import shown_address

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]


class StreamSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[stream]``: the replicated log."""

    kind: Literal["none", "jetstream"] = "none"
    url: str = ""
    monitor_url: str = ""
    username: str = ""
    password: str = ""
    token: str = ""
    credentials: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    replicas: Annotated[int, Meta(ge=1, le=5)] = 3
    log_gib: Annotated[float, Meta(ge=0.01, le=65_536)] = 64.0
    in_gib: Annotated[float, Meta(ge=0.01, le=65_536)] = 8.0


Role = Literal["all", "front"]
ROLES: tuple[str, ...] = get_args(Role)


class ClusterSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[cluster]``: this node among the others."""

    name: Name = "terrazzo"
    role: Role = "all"
    node: Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9-]{0,31})?$")] = ""
    lease_s: Annotated[float, Meta(ge=1, le=300)] = 3.0
    url: str = ""
    reads: bool = False
    reads_wait_s: Annotated[float, Meta(ge=0, le=60)] = 2.0
    reads_age_s: Annotated[float, Meta(ge=1, le=86_400)] = 30.0


class Beside(NamedTuple):
    """The keys of other sections that a node needs."""

    store_kind: str
    database_url: str
    secrets_key: str
    token_key: str
    has_bridges: bool


def check_cluster(stream: StreamSection, cluster: ClusterSection, beside: Beside) -> None:
    """Checks keys that a node needs with ``stream.kind``.

    Raises:
        ConfigError: naming the key.
    """
    if stream.kind == "none":
        if cluster.role == "front":
            raise ConfigError("cluster.role: front needs stream.kind = jetstream: what it takes goes into the log")
        return
    _check_urls("stream.url", stream.url, ("nats", "tls"), "nats://host:4222")
    if cluster.url:
        _check_url(cluster.url)
    if stream.monitor_url:
        _check_urls("stream.monitor_url", stream.monitor_url, ("http", "https"), "http://host:8222")
    if not cluster.node:
        raise ConfigError("cluster.node: is required with stream.kind = jetstream: a name that no other node has")
    if beside.store_kind != "embedded":
        raise ConfigError("store.kind: stream.kind = jetstream needs embedded, as each node keeps its own time series")
    if not beside.database_url.startswith("postgres"):
        raise ConfigError("database.url: stream.kind = jetstream needs PostgreSQL, which all nodes reach")
    for key, value in (("database.secrets_key", beside.secrets_key), ("auth.token_key", beside.token_key)):
        if not value and (cluster.role, key) != ("front", "auth.token_key"):  # a front knows no users
            raise ConfigError(f"{key}: is required with stream.kind = jetstream, the same on each node")
    if beside.has_bridges:
        raise ConfigError("bridge: is not served with stream.kind = jetstream: what waits for a link is on one node")


def _check_url(text: str) -> None:
    try:
        parts = urlsplit(text)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_sound = False
    if not is_sound or parts.username or parts.password or parts.query or parts.fragment or not text.isprintable():
        raise ConfigError(f"cluster.url: expected http://host:8080, no password in it, got {shown_address(text)!r}")


def _check_urls(key: str, text: str, schemes: tuple[str, ...], shape: str) -> None:
    given = [each.strip() for each in text.split(",") if each.strip()]
    if not given:
        raise ConfigError(f"{key}: is required with stream.kind = jetstream, as in {shape}")
    for each in given:
        try:
            parts = urlsplit(each)
            is_sound = parts.scheme in schemes and bool(parts.hostname) and parts.port is not None
        except ValueError:
            is_sound = False
        if not is_sound or parts.username or parts.password:
            raise ConfigError(
                f"{key}: expected {shape}, several with commas, no password in it, got {shown_address(each)!r}"
            )
