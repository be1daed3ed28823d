"""Reading the configuration: defaults, file, environment, and every way to get it wrong."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.config.bridge import BridgeTopicSection
from terrazzo.config.broker import check_is_served
from terrazzo.config.messenger import EmailSection, MessengerProjectSection, SmsSection
from terrazzo.config.sections import ARRAYS, SECTIONS, Config, ConfigError, load_config

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
TABLES = {
    **SECTIONS,
    **ARRAYS,
    "bridge.out": BridgeTopicSection,  # bridge.in has the same keys
    "messenger.project": MessengerProjectSection,
    "messenger.project.email": EmailSection,
    "messenger.project.sms": SmsSection,  # the other HTTP providers have the same keys, without the variant
}


def load(tmp_path: Path, toml: str = "", **environ: str) -> Config:
    path = tmp_path / "terrazzo.toml"
    path.write_text(toml)
    return load_config(path, environ)


@pytest.mark.parametrize(
    ("older", "present", "counts"), [("0", "0", 0), ("90", "0", 90), ("0", "30", 30), ("90", "30", 30), ("7", "30", 7)]
)
def test_audit_entries_are_kept_one_way_whatever_it_is_called(older: str, present: str, counts: int) -> None:
    given = {"TERRAZZO_AUDIT__RETENTION_DAYS": older, "TERRAZZO_RETENTION__AUDIT": present}
    config = load_config(None, {**given, "TERRAZZO_RETENTION__EVENTS": "3"})
    assert (config.kept_days.audit, config.kept_days.events) == (counts, 3)


def test_defaults_are_those_that_clients_rely_on() -> None:
    config = load_config(None, {})
    assert config.data.dir == "./terrazzo-data"
    assert (config.http.host, config.http.port) == ("127.0.0.1", 31507)
    assert (config.websocket.host, config.websocket.port) == ("127.0.0.1", 31503)
    assert (config.tcp.enabled, config.tcp.host, config.tcp.port) == (False, "127.0.0.1", 31505)
    assert (config.mqtt.host, config.mqtt.port, config.mqtt.websocket_port) == ("127.0.0.1", 1883, 8083)
    assert (config.mqtt.tls_port, config.mqtt.websocket_tls_port, config.mqtt.has_tls) == (None, None, False)
    assert (config.broker.kind, config.store.kind, config.store.retention_days) == ("embedded", "embedded", 0)
    assert (config.database.url, config.auth.token_hours, config.time.zone) == ("", 2.0, "UTC")
    assert config.command.expiry_s == 86_400
    limits = msgspec.structs.asdict(config.limits)
    assert limits == {
        "topic_bytes": 1_024,
        "terminal_series": 10_000,
        "point_name_chars": 1_024,
        "points": 20_000,
        "variable_chars": 4_096,
        "mosaic_bytes": 1_048_576,
        "body_bytes": 1_048_576,
        "field_values": 30_000,
        "mqtt_packet_bytes": 1_048_576,
        "connections": 10_000,
        "unauthenticated_connections": 1_000,
        "connect_bytes": 16_384,
        "connects_per_second": 2_000,
        "half_open": 10_000,
        "half_open_per_address": 1_024,
        "half_open_bytes": 16_777_216,
        "publish_per_second": 0,
        "company_publish_per_second": 0,
        "inflight": 65_535,
        "inflight_to_client": 100,
        "queued_messages": 1_000,
        "queued_bytes": 8_388_608,
        "login_failures": 10,
        "login_window_s": 300,
        "provision_s": 600,
        "ws_subscriptions": 100,
        "import_bytes": 33_554_432,
        "file_bytes": 67_108_864,
        "pipelined_requests": 32,
        "request_timeout_s": 30,
        "statement_s": 10,
        "influx_points": 5_000_000,
        "influx_s": 30,
        "reading_s": 60,
        "idle_timeout_s": 300,
        "live_frames": 10_000,
        "api_connections": 0,
        "answer_bytes": 16_777_216,
        "company_answer_bytes": 67_108_864,
        "company_series_mib": 0,
        "live_bytes": 67_108_864,
        "live_feeds": 1_000,
        "live_resume_s": 300,
        "memory_mib": 0,
        "clock_ahead_s": 300,
        "boot_timeout_s": 300,
        "refusals": 50_000,
        "pin_chars": 1,
        "company_api_keys": 1_000,
        "company_rules": 100,
        "company_rule_conditions": 100_000,
        "rule_messages_per_hour": 1_000,
        "company_rule_commands_per_hour": 10_000,
        "authorities": 1_000,
        "company_authorities": 10,
        "company_records": 200_000,
        "company_record_bytes": 2**30,
        "company_files": 100_000,
        "company_file_bytes": 10 * 2**30,
        "object_events": 500_000,
        "company_queued_messages": 500_000,
        "company_queued_bytes": 256 * 2**20,
        "company_subscriptions": 200_000,
        "retained_messages": 200_000,
        "retained_bytes": 16 * 2**30,
        "retained_memory_bytes": 256 * 2**20,
        "company_retained_messages": 50_000,
        "company_retained_bytes": 2 * 2**30,
        "terminal_retained_messages": 1_000,
        "terminal_retained_bytes": 32 * 2**20,
        "company_events": 5_000_000,
        "company_event_bytes": 8 * 2**30,
    }
    bases = {"grid", "mosaic", "service", "offline", "object", "stats", "pusher"}
    assert {f"{name}_base": f"/{name}" for name in bases}.items() <= msgspec.structs.asdict(config.api).items()
    assert (config.api.messenger_base, config.api.retainer_base) == ("/api/send", "/retainer/api")


def test_environment_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    toml = '[http]\nhost = "0.0.0.0"\nport = 1\n[time]\nzone = "Asia/Shanghai"\n[auth]\ntoken_hours = 8\n'
    config = load(tmp_path, toml, TERRAZZO_HTTP__PORT="2", TERRAZZO_AUTH__TOKEN_HOURS="0.5", TERRAZZO_TCP__ENABLED="on")
    assert (config.http.host, config.http.port) == ("0.0.0.0", 2)
    assert config.auth.token_hours == 0.5
    assert config.tcp.enabled is True
    assert str(config.zone) == "Asia/Shanghai"


def test_text_keys_take_text_that_looks_like_something_else() -> None:
    config = load_config(None, {"TERRAZZO_ADMIN__PASSWORD": "12345678", "TERRAZZO_STORE__TOKEN": "true"})
    assert (config.admin.password, config.store.token) == ("12345678", "true")


def test_other_variables_are_nobodys_business() -> None:
    environ = {"TERRAZZO_REQUIRE_SERVERS": "1", "HTTP__PORT": "x", "MY_TERRAZZO_HTTP__PORT": "x", "TERRAZZO_": ""}
    assert load_config(None, environ) == Config()


@pytest.mark.parametrize("off", ["off", ""])
def test_a_port_can_be_off(tmp_path: Path, off: str) -> None:
    assert load_config(None, {"TERRAZZO_MQTT__PORT": off}).mqtt.port is None
    assert load(tmp_path, f'[websocket]\nport = "{off}"').websocket.port is None
    assert load_config(None, {"TERRAZZO_MQTT__WEBSOCKET_PORT": off}).mqtt.websocket_port is None
    assert load(tmp_path, f'[mqtt]\nwebsocket_port = "{off}"').mqtt.websocket_port is None


def test_port_0_and_keys_for_later_are_values_like_others(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        '[mqtt]\nport = 0\ntls_port = 8883\ntls_cert = "c"\ntls_key = "k"\n[tcp]\nenabled = true\n'
        '[broker]\nkind = "external"\nurl = "mqtt://other"\n',
    )
    assert (config.mqtt.port, config.mqtt.tls_port, config.tcp.enabled, config.broker.kind) == (
        0,
        8883,
        True,
        "external",
    )


def config_or_error(variable: str, text: str) -> Config | ConfigError:
    try:
        return load_config(None, {variable: text})
    except ConfigError as error:
        return error


BAD_FILES = [
    ("[mqtt]\nport = 99999", 'mqtt.port: expected 0..65535 or "off", got 99999'),
    ("[mqtt]\nport = -1", 'mqtt.port: expected 0..65535 or "off", got -1'),
    ('[mqtt]\nport = "1883"', "mqtt.port: expected 0..65535 or \"off\", got '1883'; write it without quotes: 1883"),
    ("[mqtt]\nport = true", 'mqtt.port: expected 0..65535 or "off", got True'),
    ("[mqtt]\nport = 1883.0", 'mqtt.port: expected 0..65535 or "off", got 1883.0'),
    ('[mqtt]\nport = "of"', "mqtt.port: expected 0..65535 or \"off\", got 'of'; did you mean off?"),
    ('[tcp]\nenabled = "ture"', "tcp.enabled: expected true or false, got 'ture'; did you mean true?"),
    ('[store]\nkind = "Influx"', "store.kind: expected embedded or influxdb, got 'Influx'; did you mean influxdb?"),
    ("[mqtt]\nprot = 1", "mqtt.prot: unknown key; did you mean mqtt.port?"),
    ("[mqtt]\nenabled = true", "mqtt.enabled: unknown key; did you mean tcp.enabled?"),
    ("[mqtt]\nxyzzy = 1", "mqtt.xyzzy: unknown key"),
    ("[mqqt]\nport = 1", "mqqt: unknown section; did you mean mqtt?"),
    ("port = 1", "port: unknown section"),
    ("mqtt = 1", "mqtt: expected a section [mqtt], got 1"),
    ("[tcp]\nenabled = 1", "tcp.enabled: expected true or false, got 1"),
    ('[http]\nhost = ""', "http.host: expected text that is not empty, got ''"),
    ('[http]\ntrusted_proxies = "10.0.0.1"', "http.trusted_proxies: expected a list of texts, got '10.0.0.1'"),
    ('[http]\ntrusted_proxies = ["proxy"]', "http.trusted_proxies: expected addresses and networks"),
    ('[broker]\nauth_from = ["broker"]', "broker.auth_from: expected addresses and networks"),
    ('[broker]\nauth_token = "short"', "broker.auth_token: expected"),
    ('[http]\ntrusted_proxies = ["10.0.0.1/8"]', "http.trusted_proxies: expected addresses and networks"),
    ('[http]\nallowed_origins = ["console"]', "http.allowed_origins: expected origins such as https://"),
    ('[http]\nallowed_origins = ["https://a.example/"]', "http.allowed_origins: expected origins such as https://"),
    ('[http]\nmap_tiles = "https://tiles.example/{z}/{x}.png"', "http.map_tiles: expected an address such as"),
    (
        '[http]\nmap_tiles = "https://t.example; script-src */{z}/{x}/{y}"',
        "http.map_tiles: expected an address such as",
    ),
    ('[http]\nmap_tiles = "tiles/{z}/{x}/{y}.png"', "http.map_tiles: expected an address such as"),
    ('[http]\nallowed_origins = ["null"]', "http.allowed_origins: expected origins such as https://"),
    ("[http]\nhost = 1", "http.host: expected text, got 1"),
    ('[store]\nkind = "files"', "store.kind: expected embedded or influxdb, got 'files'"),
    ('[store]\nkind = "influxdb"', "store.url: is required with store.kind = influxdb"),
    (
        '[store]\nkind = "influxdb"\nurl = "http://localhost:8086"\n[limits]\ncompany_series_mib = 1',
        "limits.company_series_mib: needs store.kind = embedded",
    ),
    ('[broker]\nkind = "external"', "broker.url: is required with broker.kind = external"),
    ("[mqtt]\ntls_port = 8883", "mqtt.tls_port: expected mqtt.tls_cert and mqtt.tls_key beside it"),
    ("[mqtt]\nwebsocket_tls_port = 1", "mqtt.websocket_tls_port: expected mqtt.tls_cert and mqtt.tls_key beside it"),
    ('[http]\ntls_cert = "c"', "http.tls_cert: expected http.tls_key beside it"),
    ('[http]\ntls_key = "k"', "http.tls_key: expected http.tls_cert beside it"),
    ('[mqtt]\nport = "off"\nwebsocket_port = "off"', "mqtt.port: is off, and so are mqtt.tls_port, mqtt.web"),
    ("[auth]\ntoken_hours = 0", "auth.token_hours: expected more than 0 and at most 87600, got 0"),
    ("[auth]\ntoken_hours = nan", "auth.token_hours: expected more than 0 and at most 87600, got nan"),
    ('[auth]\ntoken_key = "hush"', "auth.token_key: expected at least 32 characters"),
    ('[database]\nsecrets_key = "hush"', "database.secrets_key: expected 64 hexadecimal digits"),
    ("[admin]\npassword = 1", "admin.password: expected text"),
    ('[time]\nzone = "Europe/Berlyn"', "time.zone: expected a time zone such as Europe/Berlin, got 'Europe/Berlyn'"),
    ('[time]\nzone = "../../etc/passwd"', "time.zone: expected a time zone"),
    ('[time]\nzone = "Europe"', "time.zone: expected a time zone"),
    ('[api]\ngrid_base = "grid"', "api.grid_base: expected a path such as /grid, got 'grid'"),
    ('[api]\ngrid_base = "/grid/"', "api.grid_base: expected a path such as /grid, got '/grid/'"),
    ('[broker]\nshared_group = "a/b"', "broker.shared_group: expected a name without / + #, got 'a/b'"),
    ("[limits]\nbody_bytes = 10", "limits.body_bytes: expected 1024..268435456, got 10"),
    ("[http\n", "terrazzo.toml: "),
    ("[[http]]\nport = 1", "http: expected a section [http]"),
]


@pytest.mark.parametrize(("toml", "message"), BAD_FILES, ids=[message for _, message in BAD_FILES])
def test_bad_file_names_the_key(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, toml)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("TERRAZZO_MQTT__PORT", "99999", 'TERRAZZO_MQTT__PORT: mqtt.port: expected 0..65535 or "off", got 99999'),
        ("TERRAZZO_MQTT__PORT", "x", "TERRAZZO_MQTT__PORT: mqtt.port: expected 0..65535 or \"off\", got 'x'"),
        ("TERRAZZO_HTTP__PORT", "", "TERRAZZO_HTTP__PORT: http.port: expected 0..65535, got ''"),
        ("TERRAZZO_HTTP__PORT", "off", "TERRAZZO_HTTP__PORT: http.port: expected 0..65535, got 'off'"),
        ("TERRAZZO_MQTT__PROT", "1", "TERRAZZO_MQTT__PROT: mqtt.prot: unknown key; did you mean mqtt.port?"),
        ("TERRAZZO_MQQT__PORT", "1", "TERRAZZO_MQQT__PORT: mqqt: unknown section; did you mean mqtt?"),
        ("TERRAZZO_TCP__ENABLED", "maybe", "TERRAZZO_TCP__ENABLED: tcp.enabled: expected true or false, got 'maybe'"),
        ("TERRAZZO_AUTH__TOKEN_HOURS", "inf", "auth.token_hours: expected more than 0"),
        ("TERRAZZO_TIME__ZONE", "Mars", "TERRAZZO_TIME__ZONE: time.zone: expected a time zone"),
    ],
)
def test_bad_variable_is_named_beside_its_key(variable: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(None, {variable: text})
    assert str(refused.value).startswith(message) or message in str(refused.value)
    assert str(refused.value).startswith(variable)


def test_secrets_are_not_shown_in_errors(tmp_path: Path) -> None:
    for toml in ('[auth]\ntoken_key = "hush"', '[database]\nsecrets_key = "hush"', '[admin]\npassword = ["hush"]'):
        with pytest.raises(ConfigError) as refused:
            load(tmp_path, toml)
        assert "hush" not in str(refused.value)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ConfigError, match="--config: "):
            load_config(path, {})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"binary\.toml"):
        load_config(tmp_path / "binary.toml", {})


@given(st.sampled_from([(s, k) for s, kind in SECTIONS.items() for k in kind.__struct_fields__]), st.text())
def test_any_text_for_any_key_is_a_value_or_an_error_that_names_it(key: tuple[str, str], text: str) -> None:
    variable = f"TERRAZZO_{key[0]}__{key[1]}".upper()
    found = config_or_error(variable, text)
    if isinstance(found, ConfigError):
        assert f"{key[0]}." in str(found)
    else:
        assert isinstance(getattr(getattr(found, key[0]), key[1]), str | int | float | tuple | None)


SSO = 'issuer = "https://x"\nclient_id = "c"\nredirect_url = "https://y"\n'


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ('issuer = "https://x"', "sso.client_id: is required with sso.issuer"),
        ('issuer = "https://x"\nclient_id = "c"', "sso.redirect_url: is required with sso.issuer"),
        (SSO.replace("https://x", "http://x"), "sso.issuer: expected https"),
        (SSO + 'roles = { ops = "root" }', "sso.roles.ops: expected one of viewer, operator, admin, got 'root'"),
        (SSO + "roles = 7", "sso.roles: expected a table of texts"),
        (SSO + 'allow_private = ["x"]', "sso.allow_private"),
        (SSO + 'scopes = "profile"', "sso.scopes: "),
        ("client_secret = 7", "sso.client_secret: expected text$"),
    ],
)
def test_single_sign_on_is_configured_whole(tmp_path: Path, keys: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        load(tmp_path, f"[sso]\n{keys}")


@pytest.mark.parametrize(
    ("project", "reason"),
    [
        ("", "there is no messenger.project of the id 7"),
        ('[[messenger.project]]\nid = 7\nname = "x"\n', "project 7 has no section email"),
    ],
)
def test_resets_need_a_project_that_sends_mail(tmp_path: Path, project: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"users.reset_project: {reason}"):
        load(tmp_path, f"[users]\nreset_project = 7\n{project}")


def test_every_key_is_documented_with_its_default() -> None:
    lines = DOCUMENT.read_text().splitlines()
    for section, kind in TABLES.items():
        for field in msgspec.structs.fields(kind):
            key = f"`{section}.{field.encode_name}`"
            rows = [line for line in lines if line.startswith(f"| {key} |")]
            assert len(rows) == 1, f"docs/configuration.md has {len(rows)} lines on {key}"
            made = "{}" if field.default_factory is dict else str(field.default)
            default = "off" if field.default is None else made
            default = default.lower() if isinstance(field.default, bool) else default
            default = "required" if field.required else "" if field.default == () else default
            shown = rows[0].split("|")[2].strip().strip("`").replace(",", "").removesuffix(".0")
            assert shown == default.replace(",", "").removesuffix(".0"), f"the default of {key}"
            assert len(rows[0].split("|")[3].strip()) > 10, f"{key} has no meaning"


def test_no_key_is_documented_that_does_not_exist() -> None:
    known = {f"{section}.{key}" for section, kind in TABLES.items() for key in kind.__struct_encode_fields__}
    shown = {line.split("`")[1] for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")}
    assert shown == known


NEEDED_BESIDE = {
    ("store", "kind", "influxdb"): {"TERRAZZO_STORE__URL": "http://localhost:8086"},
    ("broker", "kind", "external"): {"TERRAZZO_BROKER__URL": "mqtt://localhost"},
    ("cluster", "role", "front"): {
        "TERRAZZO_STREAM__KIND": "jetstream",
        "TERRAZZO_STREAM__URL": "nats://localhost:4222",
        "TERRAZZO_CLUSTER__NODE": "f1",
        "TERRAZZO_DATABASE__URL": "postgresql://localhost/t",
        "TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32,
    },
    ("stream", "kind", "jetstream"): {
        "TERRAZZO_STREAM__URL": "nats://localhost:4222",
        "TERRAZZO_CLUSTER__NODE": "a",
        "TERRAZZO_DATABASE__URL": "postgresql://localhost/t",
        "TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32,
        "TERRAZZO_AUTH__TOKEN_KEY": "k" * 32,
    },
}
CHOICES = [
    (section, field.encode_name, choice)
    for section, kind in SECTIONS.items()
    for field in msgspec.inspect.type_info(kind).fields
    if isinstance(field.type, msgspec.inspect.LiteralType)
    for choice in field.type.values
]
UNSERVED = re.compile(r"`(\w+)`[^|`]*\*\*not served by this version\*\*")


def documented_meaning(key: str) -> str:
    (row,) = [line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| `{key}` |")]
    return row.split("|", 3)[3]


@pytest.mark.parametrize(("section", "key", "choice"), CHOICES)
def test_a_choice_is_served_unless_its_documentation_says_no(section: str, key: str, choice: str) -> None:
    meaning = documented_meaning(f"{section}.{key}")
    assert f"`{choice}`" in meaning
    config = load_config(
        None, {f"TERRAZZO_{section}__{key}".upper(): choice, **NEEDED_BESIDE.get((section, key, choice), {})}
    )
    if choice in UNSERVED.findall(meaning):
        with pytest.raises(ConfigError, match=f"{section}.{key} = {choice}: not served by this version"):
            check_is_served(config)
    else:
        check_is_served(config)


def test_there_is_a_choice_that_is_refused_and_one_that_is_served() -> None:
    refused = {each for each in CHOICES if each[2] in UNSERVED.findall(documented_meaning(f"{each[0]}.{each[1]}"))}
    assert refused == {("broker", "kind", "external")}
    assert ("store", "kind", "influxdb") in CHOICES


SAMPLES = {
    "int": "2000",
    "float": "3.5",
    "bool": "on",
    "mqtt.tls_company_authorities": "off",
    "auth.token_key": "k" * 32,
    "database.secrets_key": "ab" * 32,
    "database.secrets_key_old": "cd" * 32,
    "metrics.token": "t" * 16,
    "broker.auth_token": "t" * 16,
    "broker.auth_from": '["10.0.0.0/8", "::1"]',
    "limits.pin_chars": "8",
    "limits.company_api_keys": "69",
    "limits.company_rules": "79",
    "limits.company_rule_conditions": "80",
    "limits.rule_messages_per_hour": "81",
    "limits.company_rule_commands_per_hour": "82",
    "limits.company_authorities": "68",
    "limits.authorities": "67",
    "limits.company_records": "70",
    "limits.company_record_bytes": "4096",
    "limits.company_files": "71",
    "limits.company_file_bytes": "4097",
    "limits.object_events": "72",
    "limits.company_queued_messages": "77",
    "limits.company_queued_bytes": "4103",
    "limits.company_subscriptions": "78",
    "limits.retained_messages": "74",
    "limits.retained_bytes": "4099",
    "limits.retained_memory_bytes": "4100",
    "limits.company_retained_messages": "75",
    "limits.company_retained_bytes": "4101",
    "limits.terminal_retained_messages": "76",
    "limits.terminal_retained_bytes": "4102",
    "limits.connects_per_second": "3000",
    "limits.company_events": "73",
    "limits.company_event_bytes": "4098",
    "files.types": "pdf,zip",
    "http.trusted_proxies": '["10.0.0.0/8", "::1"]',
    "http.allowed_origins": '["https://console.example.com"]',
    "http.public_url": "https://terminals.example.com",
    "http.map_tiles": "https://tiles.example.com/{z}/{x}/{y}.png",
    "time.zone": "Asia/Shanghai",
    "users.reset_minutes": "45",
    "backup.every_hours": "6",
    "backup.s3_endpoint": "https://storage.example.com:9000",
    "tracing.endpoint": "http://127.0.0.1:4318/v1/traces",
    "tracing.sample": "0.5",
    "tracing.attributes": '{ zone = "a" }',
    "tracing.headers": '{ key = "b" }',
    "sso.issuer": "https://login.example.com",
    "sso.redirect_url": "https://console.example.com/back",
    "sso.scopes": "openid groups",
    "sso.roles": '{ ops = "operator" }',
    "sso.allow_private": '["10.0.0.0/8"]',
    "users.reset_url": "https://console.example.com/reset",
    "ingest.decoders": '["weather-frame"]',
    "ingest.decoder_ms": "20",
    "store.seal": "off",
    "stream.replicas": "1",
}


@pytest.mark.parametrize(
    "key", [f"{s}.{field.encode_name}" for s, kind in SECTIONS.items() for field in msgspec.structs.fields(kind)]
)
def test_each_other_key_takes_a_value_and_is_read_unless_its_documentation_says_no(key: str) -> None:
    section, _, name = key.partition(".")
    if (section, name) in {choice[:2] for choice in CHOICES} or section == "messenger":
        return  # above, and with the messenger
    default = getattr(SECTIONS[section](), name)
    kind = "int" if default is None else type(default).__name__
    sample = SAMPLES.get(key) or SAMPLES.get(kind) or ("/somewhere" if name.endswith("_base") else "something")
    variables = {f"TERRAZZO_{section}__{name}".upper(): sample}
    if name in ("tls_port", "websocket_tls_port"):
        variables |= {"TERRAZZO_MQTT__TLS_CERT": "c", "TERRAZZO_MQTT__TLS_KEY": "k"}
    if key in ("http.tls_cert", "http.tls_key"):
        variables |= {"TERRAZZO_HTTP__TLS_CERT": "something", "TERRAZZO_HTTP__TLS_KEY": "something"}
    if key == "backup.every_hours":
        variables |= {"TERRAZZO_BACKUP__TARGET": "/mnt"}
    if name == "issuer":
        variables |= {"TERRAZZO_SSO__CLIENT_ID": "c", "TERRAZZO_SSO__REDIRECT_URL": "https://x/back"}
    if name == "reset_project":
        variables |= {"TERRAZZO_MESSENGER__PROJECT": '[{id = 2000, name = "x", email = {host = "h", sender = "a@b"}}]'}
    config = load_config(None, variables)
    assert getattr(getattr(config, section), name) != default
    check_is_served(config)
    is_unused = "not used yet" in documented_meaning(key)
    assert is_unused == (key.startswith("broker.") and not readers_of(name)), f"{key}: does anything read it?"


def readers_of(name: str) -> list[Path]:
    """The product's files outside of the configuration that read ``broker.<name>``."""
    product = Path(__file__).parents[2] / "platform" / "terrazzo"
    files = [path for path in product.rglob("*.py") if path.parent.name != "config"]
    return [path for path in files if re.search(rf"config\.broker\.{name}\b", path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "variable", ["TERRAZZO_HTTP__CORS_ORIGINS", "TERRAZZO_BROKER__AUTH_FROM", "TERRAZZO_HTTP__PORT"]
)
def test_what_is_nested_too_deeply_is_refused_with_words(tmp_path: Path, variable: str) -> None:
    deep = "[" * 1_200
    (tmp_path / "terrazzo.toml").write_text(f"[http]\nport = {deep}")
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_config(tmp_path / "terrazzo.toml", {})
    with pytest.raises(ConfigError):
        load_config(None, {variable: deep})


def test_a_role_is_checked_with_what_it_needs() -> None:
    node = NEEDED_BESIDE[("stream", "kind", "jetstream")] | {"TERRAZZO_STREAM__KIND": "jetstream"}
    assert load_config(None, node).with_role("front").cluster.role == "front"
    front = NEEDED_BESIDE[("cluster", "role", "front")] | {"TERRAZZO_CLUSTER__ROLE": "front"}
    with pytest.raises(ConfigError, match=r"auth.token_key: is required"):
        load_config(None, front).with_role("all")
    with pytest.raises(ConfigError, match="--role: expected one of all, front, got 'worker'"):
        load_config(None, node).with_role("worker")
    with pytest.raises(ConfigError, match=r"cluster.role: front needs stream.kind = jetstream"):
        load_config(None, {}).with_role("front")
