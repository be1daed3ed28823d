"""Configuration: TOML, overridden by the environment (``TERRAZZO_<SECTION>__<KEY>``); a bad key or value is fatal.

Each section is a Struct: its fields are the keys, with their defaults and ranges. A section in ``ARRAYS`` may occur
several times, and is named by number in the environment (``TERRAZZO_BRIDGE__1__PASSWORD``). docs/configuration.md says
what each key means.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from msgspec import Meta, inspect

from terrazzo.config.backup import BackupSection, check_backup
from terrazzo.config.bridge import BridgeSection, check_bridges
from terrazzo.config.cluster import ROLES, Beside, ClusterSection, StreamSection, check_cluster
from terrazzo.config.http import check_askers, check_http, check_map_tiles
from terrazzo.config.kinds import CountOrOff, Days, Host, Port, Prefix, Seconds
from terrazzo.config.limits import LimitsSection
from terrazzo.config.messenger import MessengerSection, check_messenger
from terrazzo.config.sso import SsoSection, check_sso
from terrazzo.config.tracing import TracingSection
from terrazzo.config.users import UsersSection, check_users
from terrazzo.config.values import ConfigError, Given, build_table, check_value, from_text, suggest

__all__ = ["ARRAYS", "SECTIONS", "Config", "ConfigError", "load_config"]

ENVIRONMENT_PREFIX = "TERRAZZO_"
_ALL_KEYS = "; docs/configuration.md lists all keys"


class DataSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[data]``: the folder of everything that is kept on this machine."""

    dir: str = "./terrazzo-data"


class AdminSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[admin]``: the first administrator."""

    password: str = ""


class HttpSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[http]``: the port of gateway, component interfaces, metrics and health."""

    host: Host = "127.0.0.1"
    port: Port = 31507
    tls_cert: str = ""
    tls_key: str = ""
    public_url: Annotated[str, Meta(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    trusted_proxies: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    map_tiles: str = ""
    map_attribution: Annotated[str, Meta(max_length=200)] = ""


class WebsocketSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[websocket]``: the gateway's WebSocket port."""

    host: Host = "127.0.0.1"
    port: Port | None = 31503


class TcpSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[tcp]``: the gateway's TCP port."""

    enabled: bool = False
    host: Host = "127.0.0.1"
    port: Port = 31505


class MqttSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[mqtt]``: the embedded broker's listeners."""

    host: Host = "127.0.0.1"
    port: Port | None = 1883
    tls_port: Port | None = None
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    tls_company_authorities: bool = True
    websocket_port: Port | None = 8083
    websocket_tls_port: Port | None = None
    sys_topics: Literal["off", "platform", "granted"] = "off"
    provision_plain: bool = False

    @property
    def has_tls(self) -> bool:
        """Whether any of its listeners speaks TLS."""
        return self.tls_port is not None or self.websocket_tls_port is not None


class BrokerSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[broker]``: the broker that terminals connect to."""

    kind: Literal["embedded", "external"] = "embedded"
    url: str = ""
    username: str = ""
    password: str = ""
    shared_group: Annotated[str, Meta(pattern=r"^[^/+#\x00]+$")] = "terrazzo"
    auth_token: Annotated[str, Meta(pattern=r"^([\x21-\x7e]{16,})?$")] = ""
    auth_from: tuple[str, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Whether other brokers may ask who may log in."""
        return bool(self.auth_token or self.auth_from)


class StoreSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[store]``: the time-series store."""

    kind: Literal["embedded", "influxdb"] = "embedded"
    url: str = ""
    token: str = ""
    org: str = ""
    bucket: str = ""
    database: str = ""
    username: str = ""
    password: str = ""
    retention_days: CountOrOff = 0
    deleted_retention_days: CountOrOff = 0
    cache_mib: Annotated[int, Meta(ge=4, le=65_536)] = 16
    seal: bool = True
    seal_free_mib: Annotated[int, Meta(ge=0, le=1_048_576)] = 512


class DatabaseSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[database]``: the metadata database."""

    url: str = ""
    secrets_key: Annotated[str, Meta(pattern=r"^([0-9a-fA-F]{64})?$")] = ""
    secrets_key_old: Annotated[str, Meta(pattern=r"^([0-9a-fA-F]{64})?$")] = ""


class AuthSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[auth]``: tokens of the APIs."""

    token_hours: Annotated[float, Meta(gt=0, le=87_600)] = 2.0
    session_days: Annotated[float, Meta(gt=0, le=3_650)] = 30.0
    token_key: Annotated[str, Meta(pattern=r"^(.{32,})?$")] = ""


class AuditSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[audit]``: the audit log."""

    retention_days: CountOrOff = 0


class RetentionSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[retention]``: for how many days the database keeps what has happened; companies may keep less."""

    events: Days = 0
    labels: Days = 0
    commands: Days = 0
    messages: Days = 0
    audit: Days = 0


class IngestSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[ingest]``: decoders of payloads."""

    decoders: tuple[str, ...] = ()
    decoder_ms: Annotated[int, Meta(ge=1, le=1_000)] = 50


class TimeSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[time]``: the zone of times without an offset."""

    zone: Host = "UTC"


class LoggingSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[logging]``: the log, which goes to standard error."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "warning"


class MetricsSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[metrics]``: who may read ``/metrics``."""

    token: Annotated[str, Meta(pattern=r"^([\x21-\x7e]{16,})?$")] = ""


class CommandSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[command]``: commands to terminals."""

    expiry_s: Seconds = 86_400
    upgrade_role: Literal["operator", "admin"] = "admin"
    upgrade_details: bool = False


class ApiSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[api]``: path prefixes of the component interfaces on the HTTP port."""

    grid_base: Prefix = "/grid"
    mosaic_base: Prefix = "/mosaic"
    service_base: Prefix = "/service"
    offline_base: Prefix = "/offline"
    object_base: Prefix = "/object"
    stats_base: Prefix = "/stats"
    pusher_base: Prefix = "/pusher"
    messenger_base: Prefix = "/api/send"
    retainer_base: Prefix = "/retainer/api"


class FilesSection(msgspec.Struct, frozen=True, kw_only=True):
    """``[files]``: uploaded files."""

    types: Annotated[str, Meta(pattern=r"^\s*[A-Za-z0-9]+(\s*,\s*[A-Za-z0-9]+)*\s*$")] = (
        "pdf,png,jpg,jpeg,gif,webp,bmp,mp4,mov,webm,mp3,doc,xls,ppt,docx,xlsx,pptx,zip,gz,tgz,tar,7z,"
        "txt,log,md,csv,json,xml,yaml,toml,lua,hex,bin,img,fw,dwg,dxf"
    )


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration: one field for each section."""

    data: DataSection = DataSection()
    admin: AdminSection = AdminSection()
    http: HttpSection = HttpSection()
    websocket: WebsocketSection = WebsocketSection()
    tcp: TcpSection = TcpSection()
    mqtt: MqttSection = MqttSection()
    broker: BrokerSection = BrokerSection()
    store: StoreSection = StoreSection()
    database: DatabaseSection = DatabaseSection()
    auth: AuthSection = AuthSection()
    users: UsersSection = UsersSection()
    sso: SsoSection = SsoSection()
    audit: AuditSection = AuditSection()
    retention: RetentionSection = RetentionSection()
    ingest: IngestSection = IngestSection()
    time: TimeSection = TimeSection()
    logging: LoggingSection = LoggingSection()
    metrics: MetricsSection = MetricsSection()
    command: CommandSection = CommandSection()
    api: ApiSection = ApiSection()
    files: FilesSection = FilesSection()
    limits: LimitsSection = LimitsSection()
    messenger: MessengerSection = MessengerSection()
    backup: BackupSection = BackupSection()
    tracing: TracingSection = TracingSection()
    stream: StreamSection = StreamSection()
    cluster: ClusterSection = ClusterSection()
    bridge: tuple[BridgeSection, ...] = ()

    @property
    def data_dir(self) -> Path:
        """``data.dir`` with ``~`` expanded."""
        return Path(self.data.dir).expanduser()

    @property
    def zone(self) -> ZoneInfo:
        """The time zone ``time.zone``."""
        return ZoneInfo(self.time.zone)

    @property
    def kept_days(self) -> RetentionSection:
        """``[retention]``; of ``retention.audit`` and its older name, ``audit.retention_days``, the fewer days."""
        given = [days for days in (self.retention.audit, self.audit.retention_days) if days]
        return msgspec.structs.replace(self.retention, audit=min(given, default=0))

    @property
    def store_dir(self) -> Path:
        """The folder of the embedded time-series store."""
        return self.data_dir / "series"

    def with_data_dir(self, folder: Path) -> Config:
        """A copy with another data folder (``--data``)."""
        return msgspec.structs.replace(self, data=DataSection(dir=str(folder)))

    def with_ports(self, *, http: int | None = None, mqtt: int | None = None) -> Config:
        """A copy with other values of ``http.port`` and ``mqtt.port``; None leaves a port as it is."""
        changed: dict[str, Any] = {}
        if http is not None:
            changed["http"] = msgspec.structs.replace(self.http, port=http)
        if mqtt is not None:
            changed["mqtt"] = msgspec.structs.replace(self.mqtt, port=mqtt)
        return msgspec.structs.replace(self, **changed)

    def with_role(self, role: str) -> Config:
        """A copy with another ``cluster.role`` (``--role``).

        Raises:
            ConfigError: there is no such role, or the configuration is not that of one.
        """
        if role not in ROLES:
            raise ConfigError(f"--role: expected one of {', '.join(ROLES)}, got {role!r:.100}")
        changed = msgspec.structs.replace(self, cluster=msgspec.structs.replace(self.cluster, role=role))
        _check_cluster(changed)
        return changed

    def with_connections(self, connections: int, of_apis: int) -> Config:
        """A copy with another ``limits.connections`` and, where they differ, ``limits.api_connections``."""
        limits = self.limits
        api_connections = of_apis if limits.api_connections or of_apis != connections else 0
        limits = msgspec.structs.replace(limits, connections=connections, api_connections=api_connections)
        return msgspec.structs.replace(self, limits=limits)


ARRAYS: dict[str, type[msgspec.Struct]] = {"bridge": BridgeSection}
"""Sections of which there may be several: ``[[bridge]]``."""

SECTIONS: dict[str, type[msgspec.Struct]] = {
    field.encode_name: field.type for field in msgspec.structs.fields(Config) if field.encode_name not in ARRAYS
}  # in the order in which they are documented

Tables = dict[str, list[dict[str, Given]]]
"""The tables given for each section of ``ARRAYS``: key to value and source."""


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Reads the file, if any, then the environment; the rest has its defaults.

    Raises:
        ConfigError: the file can't be read, a section or key is unknown, a value is of the wrong type or out of range.
    """
    tables: Tables = {section: [] for section in ARRAYS}
    given = _read_file(path, tables) if path is not None else {}
    given |= _read_environment(environ, tables)
    values: dict[str, dict[str, Any]] = {}
    for (section, key), each in given.items():
        values.setdefault(section, {})[key] = check_value(_type_of(section, key), each)
    sections: dict[str, Any] = {name: SECTIONS[name](**keys) for name, keys in values.items()}
    for name, kind in ARRAYS.items():
        sections[name] = tuple(build_table(kind, each, f"{name}[{n}]") for n, each in enumerate(tables[name], 1))
    config = Config(**sections)
    _check_together(config, given)
    return config


def _read_file(path: Path, tables: Tables) -> dict[tuple[str, str], Given]:
    import tomllib  # most start without a file

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        advice = "name a file that can be read, or leave it out"
        raise ConfigError(f"--config: {path}: {error.strerror}; {advice}") from None
    except RecursionError:
        raise ConfigError(f"--config: {path}: is nested too deeply; no key takes that many levels") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        advice = "docs/configuration.md shows how keys are written in TOML"
        raise ConfigError(f"--config: {path}: {error}; {advice}") from None
    given = {}
    for section, keys in document.items():
        if section in ARRAYS:
            tables[section] = _read_tables(section, keys)
            continue
        _known_section(section, section)
        if not isinstance(keys, dict):
            raise ConfigError(f"{section}: expected a section [{section}], got {keys!r}")
        for key, value in keys.items():
            _known_key(section, key, f"{section}.{key}")
            given[section, key] = Given(value, f"{section}.{key}")
    return given


def _read_environment(environ: Mapping[str, str], tables: Tables) -> dict[tuple[str, str], Given]:
    given = {}
    for variable, text in sorted(environ.items()):
        section, separator, key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        if not variable.startswith(ENVIRONMENT_PREFIX) or not separator:
            continue  # TERRAZZO_ alone is free for other uses
        if section in ARRAYS:
            _put_in_table(tables[section], variable, section, key, text)
            continue
        source = f"{variable}: {section}.{key}"
        _known_section(section, f"{variable}: {section}")
        _known_key(section, key, source)
        given[section, key] = Given(from_text(_type_of(section, key), text), source)
    return given


def _read_tables(section: str, given: Any) -> list[dict[str, Given]]:
    if not isinstance(given, list) or not all(isinstance(table, dict) for table in given):
        got = f"one [{section}]" if isinstance(given, dict) else f"{given!r:.100}"
        raise ConfigError(f"{section}: expected sections [[{section}]], got {got}")
    return [
        {key: Given(value, f"{section}[{number}].{key}") for key, value in table.items()}
        for number, table in enumerate(given, 1)
    ]


def _put_in_table(tables: list[dict[str, Given]], variable: str, section: str, rest: str, text: str) -> None:
    """Sets ``TERRAZZO_BRIDGE__<number>__<KEY>`` in the table of this number, from 1; the next number adds a table."""
    digits, _, key = rest.partition("__")
    if not digits.isdecimal() or not 1 <= int(digits) <= len(tables) + 1:
        shape = f"{ENVIRONMENT_PREFIX}{section.upper()}__<number>__<KEY>"
        raise ConfigError(f"{variable}: expected {shape}, with numbers from 1 on and without gaps")
    if int(digits) > len(tables):
        tables.append({})
    source = f"{variable}: {section}[{digits}].{key}"
    kinds = _fields_of(ARRAYS[section])
    if key not in kinds:
        raise ConfigError(f"{source}: unknown key{suggest(key, list(kinds), f'{section}[{digits}].')}")
    tables[int(digits) - 1][key] = Given(from_text(kinds[key], text), source)


def _known_section(name: str, source: str) -> None:
    if name not in SECTIONS:
        near = suggest(name, [*SECTIONS, *ARRAYS]) or _ALL_KEYS
        raise ConfigError(f"{source}: unknown section{near}")


def _known_key(section: str, key: str, source: str) -> None:
    keys = SECTIONS[section].__struct_fields__
    if key not in keys:
        elsewhere = [f"{other}.{key}" for other, keys_ in SECTIONS.items() if key in keys_.__struct_fields__]
        near = suggest(key, keys, f"{section}.") or (f"; did you mean {elsewhere[0]}?" if elsewhere else _ALL_KEYS)
        raise ConfigError(f"{source}: unknown key{near}")


def _type_of(section: str, key: str) -> inspect.Type:
    return _fields_of(SECTIONS[section])[key]


def _fields_of(kind: type[msgspec.Struct]) -> dict[str, inspect.Type]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field.type for field in info.fields}


def _check_together(config: Config, given: Mapping[tuple[str, str], Given]) -> None:
    """Checks keys that depend on each other, and values that only the system knows, such as time zones."""
    try:
        _ = config.zone
    except (KeyError, OSError, ValueError):  # unknown, a folder of zones, not a name at all
        source = given["time", "zone"].source
        near = suggest(config.time.zone, sorted(available_timezones()))
        raise ConfigError(
            f"{source}: expected a time zone such as Europe/Berlin, got {config.time.zone!r:.100}{near}"
        ) from None
    _check_listeners(config.http, config.mqtt)
    if config.broker.kind == "external" and not config.broker.url:
        raise ConfigError("broker.url: is required with broker.kind = external")
    if config.store.kind == "influxdb" and not config.store.url:
        raise ConfigError("store.url: is required with store.kind = influxdb")
    if config.store.kind == "influxdb" and config.limits.company_series_mib:
        raise ConfigError("limits.company_series_mib: needs store.kind = embedded")
    check_http(trusted_proxies=config.http.trusted_proxies, allowed_origins=config.http.allowed_origins)
    check_map_tiles(config.http.map_tiles)
    check_askers(config.broker.auth_from)
    check_bridges(config.bridge)
    check_messenger(config.messenger)
    check_users(config.users, config.messenger)
    check_sso(config.sso)
    check_backup(config.backup)
    _check_cluster(config)


def _check_cluster(config: Config) -> None:
    database = config.database
    keys = database.secrets_key, config.auth.token_key
    beside = Beside(config.store.kind, database.url, *keys, has_bridges=bool(config.bridge))
    check_cluster(config.stream, config.cluster, beside)


def _check_listeners(http: HttpSection, mqtt: MqttSection) -> None:
    """Refuses half a pair of TLS files, a TLS port without one, and a broker that no terminal could reach."""
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if getattr(http, name) and not getattr(http, other):
            raise ConfigError(f"http.{name}: expected http.{other} beside it")
    for name in ("tls_port", "websocket_tls_port"):
        if getattr(mqtt, name) is not None and not (mqtt.tls_cert and mqtt.tls_key):
            raise ConfigError(f"mqtt.{name}: expected mqtt.tls_cert and mqtt.tls_key beside it")
    if mqtt.port is None and mqtt.websocket_port is None and not mqtt.has_tls:
        others = "mqtt.tls_port, mqtt.websocket_port and mqtt.websocket_tls_port"
        raise ConfigError(f"mqtt.port: is off, and so are {others}: no terminal could connect; turn one of them on")
