"""``[[bridge]]``: its keys and the checks across them (docs/configuration.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from terrazzo.config.values import ConfigError
from terrazzo_broker.topics.names import is_topic_filter

NAME_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
_DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}
_TOPIC_LEVELS = 200  # as the broker takes them
SHARED = "$share/"

Text = Annotated[str, Meta(min_length=1)]


class BridgeTopicSection(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of ``out`` or ``in``: topics that cross a bridge in one direction."""

    filter: Text
    qos: Literal[0, 1] = 1
    local_prefix: str = ""
    remote_prefix: str = ""

    @property
    def group(self) -> str:
        """The group of a shared subscription (``$share/<group>/...``, MQTT 5.0 4.8.2), empty for any other filter."""
        return self._parts()[0]

    @property
    def topics(self) -> str:
        """The filter without the group."""
        return self._parts()[1]

    def _parts(self) -> tuple[str, str]:
        if not self.filter.startswith(SHARED):
            return "", self.filter
        group, _, topics = self.filter.removeprefix(SHARED).partition("/")
        return group, topics


class BridgeSection(msgspec.Struct, frozen=True, kw_only=True):
    """One bridge to a remote broker."""

    name: Annotated[str, Meta(pattern=NAME_PATTERN)]
    url: Text
    username: str = ""
    password: str = ""
    client_id: str = ""
    company_id: Annotated[int, Meta(ge=0, le=2**53)] = 0
    protocol: Literal["3.1.1", "5.0"] = "5.0"
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    keep_alive_s: Annotated[int, Meta(ge=5, le=65_535)] = 60
    session_expiry_s: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 604_800
    retry_s: Annotated[int, Meta(ge=1, le=86_400)] = 30
    outgoing: tuple[BridgeTopicSection, ...] = msgspec.field(name="out", default=())
    incoming: tuple[BridgeTopicSection, ...] = msgspec.field(name="in", default=())
    queue_messages: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    queue_bytes: Annotated[int, Meta(ge=1_024, le=2**40)] = 256 * 2**20
    overflow: Literal["drop_oldest", "drop_newest"] = "drop_oldest"


class Remote(NamedTuple):
    """A bridge's URL, parsed."""

    host: str
    port: int
    tls: bool


def parse_url(url: str) -> Remote:
    """Parses ``mqtt://host[:port]`` or ``mqtts://host[:port]``.

    Raises:
        ValueError: it is something else.
    """
    parts = urlsplit(url)
    default_port = _DEFAULT_PORTS.get(parts.scheme)
    has_more = parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc
    if default_port is None or not parts.hostname or has_more or parts.port == 0:
        raise ValueError(url)
    return Remote(parts.hostname, parts.port or default_port, parts.scheme == "mqtts")


def bridge_settings(bridge: BridgeSection, broker_id: str) -> dict[str, Any]:
    """The fields of ``BridgeSettings`` from a checked section; topic rules as dictionaries."""
    given: dict[str, Any] = {**msgspec.structs.asdict(bridge), **parse_url(bridge.url)._asdict()}
    del given["url"]
    for way in ("outgoing", "incoming"):
        given[way] = [
            {**msgspec.structs.asdict(topic), "filter": topic.topics, "group": topic.group} for topic in given[way]
        ]
    for file in ("tls_ca", "tls_cert", "tls_key"):
        given[file] = given[file] and str(Path(given[file]).expanduser())
    for name in ("username", "password"):
        given[name] = given[name] or None
    given["client_id"] = bridge.client_id or f"terrazzo-{broker_id[:12]}-{bridge.name}"
    return given


def check_bridges(bridges: tuple[BridgeSection, ...]) -> None:
    """Checks what the types of single keys can't: unique names, URLs, TLS files, filters and loops.

    Raises:
        ConfigError: names the key.
    """
    names: dict[str, int] = {}
    for number, bridge in enumerate(bridges, 1):
        source = f"bridge[{number}]"
        earlier = names.setdefault(bridge.name, number)
        if earlier != number:
            raise ConfigError(f"{source}.name: bridge[{earlier}] has the name {bridge.name!r} already")
        _check_remote(bridge, source)
        _check_topics(bridge, source)


def _check_remote(bridge: BridgeSection, source: str) -> None:
    try:
        remote = parse_url(bridge.url)
    except ValueError:
        hint = "expected mqtt://host[:port] or mqtts://host[:port], user name and password as keys of their own"
        raise ConfigError(f"{source}.url: {hint}") from None
    if bridge.password and not bridge.username:
        raise ConfigError(f"{source}.username: is required with {source}.password")
    files = {"tls_ca": bridge.tls_ca, "tls_cert": bridge.tls_cert, "tls_key": bridge.tls_key}
    for key, file in files.items():
        if file and not remote.tls:
            raise ConfigError(f"{source}.{key}: is for a url with mqtts://")
        if file and not Path(file).expanduser().is_file():
            raise ConfigError(f"{source}.{key}: no file {file!r:.200}")
    if bool(bridge.tls_cert) != bool(bridge.tls_key):
        raise ConfigError(f"{source}.tls_cert: tls_cert and tls_key go together")


def _check_topics(bridge: BridgeSection, source: str) -> None:
    if not bridge.outgoing and not bridge.incoming:
        raise ConfigError(f"{source}.out: expected at least one topic in out or in")
    for key, topics in (("out", bridge.outgoing), ("in", bridge.incoming)):
        for number, topic in enumerate(topics, 1):
            _check_topic(topic, f"{source}.{key}[{number}]")
            if key == "out" and topic.filter.startswith(SHARED):
                raise ConfigError(f"{source}.{key}[{number}].filter: a shared subscription ($share/...) is for in")
    _check_loops(bridge, source)


def _check_topic(topic: BridgeTopicSection, source: str) -> None:
    for key, prefix in (("local_prefix", topic.local_prefix), ("remote_prefix", topic.remote_prefix)):
        if "+" in prefix or "#" in prefix:
            raise ConfigError(f"{source}.{key}: expected a prefix without + and #, got {prefix!r:.100}")
        pattern = prefix + topic.topics
        if topic.filter.startswith(SHARED) and (not topic.group or "+" in topic.group or "#" in topic.group):
            raise ConfigError(f"{source}.filter: expected $share/<group>/<filter>, got {topic.filter!r:.100}")
        if not is_topic_filter(pattern, levels=_TOPIC_LEVELS) or len(pattern.encode()) > 65_535:
            raise ConfigError(f"{source}.filter: expected a topic filter such as g/# or +/state, got {pattern!r:.100}")
        if pattern.startswith(SHARED):
            raise ConfigError(f"{source}.filter: $share/<group>/ stands before the filter, not in a prefix or twice")


def _check_loops(bridge: BridgeSection, source: str) -> None:
    """Refuses topics that would cross in both directions.

    MQTT 3.1.1 sends a client what the client itself has published; nothing in the message would show it. MQTT 5 has
    No Local for that, but forbids it with a shared subscription (3.8.3.1).
    """
    for out_number, leaving in enumerate(bridge.outgoing, 1):
        for in_number, coming in enumerate(bridge.incoming, 1):
            there = leaving.remote_prefix + leaving.filter, coming.remote_prefix + coming.topics
            if (bridge.protocol == "3.1.1" or coming.group) and overlap(*there):
                fault = "messages would go round and round; protocol = 5.0 prevents that"
                if coming.group:
                    fault = "what leaves would come back, which a shared subscription cannot prevent"
                raise ConfigError(
                    f"{source}.in[{in_number}].filter: {there[1]!r:.100} overlaps what out[{out_number}] sends to"
                    f" {there[0]!r:.100}: {fault}"
                )


def overlap(one: str, other: str) -> bool:
    """Whether some topic matches both filters."""
    ones, others = one.split("/"), other.split("/")
    for first, second in zip(ones, others, strict=False):
        if "#" in (first, second):
            return True
        if first != second and "+" not in (first, second):
            return False
    longer = max(ones, others, key=len)
    rest = longer[min(len(ones), len(others)) :]
    return rest in ([], ["#"])
