"""``[[bridge]]``: several of them, from the file and the environment, and every way to get one wrong."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.config.bridge import BridgeSection, BridgeTopicSection, bridge_settings, overlap, parse_url
from terrazzo.config.sections import Config, ConfigError, load_config
from terrazzo_broker.topics.names import matches

HEAD = '[[bridge]]\nname = "hq"\nurl = "mqtt://hq"\n'
OUT = 'out = [{ filter = "g/#" }]\n'


def load(tmp_path: Path, toml: str, **environ: str) -> Config:
    path = tmp_path / "terrazzo.toml"
    path.write_text(toml)
    return load_config(path, environ)


def test_two_bridges_with_all_keys(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    first = (
        '[[bridge]]\nname = "hq"\nurl = "mqtts://hq.example"\nusername = "plant"\npassword = "hush"\nclient_id = "p7"\n'
        f'protocol = "3.1.1"\ntls_ca = "{ca}"\nkeep_alive_s = 30\nsession_expiry_s = 0\nretry_s = 5\n'
        'queue_messages = 10\nqueue_bytes = 2048\noverflow = "drop_newest"\n'
        'out = [{ filter = "g/#", qos = 0, local_prefix = "", remote_prefix = "plant/7/" }, { filter = "a/+" }]\n'
        'in = [{ filter = "orders/#", local_prefix = "from/" }]\n'
    )
    second = '[[bridge]]\nname = "b.2"\nurl = "mqtt://[::1]:1999"\n[[bridge.in]]\nfilter = "#"\n'
    one, two = load(tmp_path, first + second).bridge
    assert one == BridgeSection(
        name="hq",
        url="mqtts://hq.example",
        username="plant",
        password="hush",
        client_id="p7",
        protocol="3.1.1",
        tls_ca=str(ca),
        keep_alive_s=30,
        session_expiry_s=0,
        retry_s=5,
        queue_messages=10,
        queue_bytes=2048,
        overflow="drop_newest",
        outgoing=(
            BridgeTopicSection(filter="g/#", qos=0, remote_prefix="plant/7/"),
            BridgeTopicSection(filter="a/+"),
        ),
        incoming=(BridgeTopicSection(filter="orders/#", local_prefix="from/"),),
    )
    assert two == BridgeSection(name="b.2", url="mqtt://[::1]:1999", incoming=(BridgeTopicSection(filter="#"),))
    assert parse_url(one.url) == ("hq.example", 8883, True)
    assert parse_url(two.url) == ("::1", 1999, False)
    assert bridge_settings(two, "0123456789abcdef")["client_id"] == "terrazzo-0123456789ab-b.2"


def test_the_environment_completes_and_adds_bridges(tmp_path: Path) -> None:
    bridges = load(
        tmp_path,
        HEAD + 'username = "plant"\n' + OUT,
        TERRAZZO_BRIDGE__1__PASSWORD="12345",
        TERRAZZO_BRIDGE__1__RETRY_S="7",
        TERRAZZO_BRIDGE__2__NAME="more",
        TERRAZZO_BRIDGE__2__URL="mqtt://more",
        TERRAZZO_BRIDGE__2__IN='[{ filter = "a/#", qos = 0 }]',
    ).bridge
    assert (bridges[0].password, bridges[0].retry_s, bridges[0].username) == ("12345", 7, "plant")
    assert bridges[1].incoming == (BridgeTopicSection(filter="a/#", qos=0),)


BAD = [
    ("bridge = 1", "bridge: expected sections [[bridge]], got 1"),
    ('[bridge]\nname = "hq"\npassword = "hush"', "bridge: expected sections [[bridge]], got one [bridge]"),
    ('[[bridge]]\nurl = "mqtt://hq"\n' + OUT, "bridge[1].name: is required"),
    ('[[bridge]]\nname = "hq"\n' + OUT, "bridge[1].url: is required"),
    (HEAD, "bridge[1].out: expected at least one topic in out or in"),
    (HEAD + OUT + 'ulr = "x"', "bridge[1].ulr: unknown key; did you mean bridge[1].url?"),
    (HEAD + OUT + "protocol = 5.0", "bridge[1].protocol: expected 3.1.1 or 5.0, got 5.0"),
    (HEAD + OUT + 'password = "hush"', "bridge[1].username: is required with bridge[1].password"),
    (HEAD + OUT + 'tls_ca = "ca.pem"', "bridge[1].tls_ca: is for a url with mqtts://"),
    (HEAD + OUT + "keep_alive_s = 1", "bridge[1].keep_alive_s: expected 5..65535, got 1"),
    (HEAD + OUT + 'overflow = "block"', "bridge[1].overflow: expected drop_newest or drop_oldest, got 'block'"),
    (HEAD + OUT + HEAD + OUT, "bridge[2].name: bridge[1] has the name 'hq' already"),
    (HEAD + "out = 1", "bridge[1].out: expected a list of tables [{ ... }], got 1"),
    (HEAD + 'out = ["g/#"]', "bridge[1].out[1]: expected a table, got 'g/#'"),
    (HEAD + "out = [{ qos = 1 }]", "bridge[1].out[1].filter: is required"),
    (HEAD + 'in = [{ filter = "a" }, { filter = "a", qos = 2 }]', "bridge[1].in[2].qos: expected 0 or 1, got 2"),
    (HEAD + 'in = [{ filter = "a", qos = true }]', "bridge[1].in[1].qos: expected 0 or 1, got True"),
    (HEAD + 'in = [{ filter = "a", prefix = "x" }]', "bridge[1].in[1].prefix: unknown key"),
    (HEAD + 'in = [{ filter = "a/#/b" }]', "bridge[1].in[1].filter: expected a topic filter such as g/# or +/state"),
    (HEAD + 'in = [{ filter = "$share/g" }]', "bridge[1].in[1].filter: expected a topic filter"),
    (
        HEAD + 'in = [{ filter = "$share//a" }]',
        "bridge[1].in[1].filter: expected $share/<group>/<filter>, got '$share//a'",
    ),
    (HEAD + 'in = [{ filter = "$share/+/a" }]', "bridge[1].in[1].filter: expected $share/<group>/<filter>, got"),
    (HEAD + 'in = [{ filter = "$share/g/$share/g/a" }]', "bridge[1].in[1].filter: $share/<group>/ stands before"),
    (HEAD + 'in = [{ filter = "a", remote_prefix = "$share/g/" }]', "bridge[1].in[1].filter: $share/<group>/ stands"),
    (
        HEAD + 'out = [{ filter = "$share/g/a" }]',
        "bridge[1].out[1].filter: a shared subscription ($share/...) is for in",
    ),
    (HEAD + 'in = [{ filter = "a", local_prefix = "+/" }]', "bridge[1].in[1].local_prefix: expected a prefix without"),
    (HEAD + 'in = [{ filter = "#", local_prefix = "a" }]', "bridge[1].in[1].filter: expected a topic filter"),
    (HEAD + 'name = "x"', "terrazzo.toml: "),
    ('[[bridge]]\nname = "../x"\nurl = "mqtt://hq"\n' + OUT, "bridge[1].name: expected a name of at most 64 letters"),
]


@pytest.mark.parametrize(("toml", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_bridge_names_the_key(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, toml)
    assert message in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["hq", "http://hq", "mqtt://", "mqtt://hq:x", "mqtt://hq:0", "mqtt://hq:70000", "mqtt://u:p@hq", "mqtt://hq/t", "mqtt://[::1"],
)  # fmt: skip
def test_a_bad_url(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"bridge\[1\]\.url: expected mqtt://host"):
        load(tmp_path, f'[[bridge]]\nname = "hq"\nurl = "{url}"\n{OUT}')


@pytest.mark.parametrize("keys", ['tls_cert = "{file}"', 'tls_key = "{file}"', 'tls_ca = "{file}.none"'])
def test_tls_files(tmp_path: Path, keys: str) -> None:
    file = tmp_path / "file.pem"
    file.write_text("")
    with pytest.raises(ConfigError, match=r"bridge\[1\]\.tls_"):
        load(tmp_path, f'[[bridge]]\nname = "hq"\nurl = "mqtts://hq"\n{OUT}' + keys.format(file=file))


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("TERRAZZO_BRIDGE__3__URL", "expected TERRAZZO_BRIDGE__<number>__<KEY>, with numbers from 1 on"),
        ("TERRAZZO_BRIDGE__URL", "expected TERRAZZO_BRIDGE__<number>__<KEY>"),
        ("TERRAZZO_BRIDGE__1__ULR", "bridge[1].ulr: unknown key; did you mean bridge[1].url?"),
        ("TERRAZZO_BRIDGE__1__RETRY_S", "bridge[1].retry_s: expected 1..86400, got 'x'"),
        ("TERRAZZO_BRIDGE__1__OUT", "bridge[1].out: expected a list of tables"),
    ],
)
def test_a_bad_variable_is_named(tmp_path: Path, variable: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, HEAD + OUT, **{variable: "x"})
    assert str(refused.value).startswith(f"{variable}: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("out", "in_", "collide"),
    [
        ('{ filter = "g/#" }', '{ filter = "g/#" }', True),
        ('{ filter = "g/#", remote_prefix = "a/" }', '{ filter = "#" }', True),
        ('{ filter = "g/#", remote_prefix = "a/" }', '{ filter = "g/#", remote_prefix = "b/" }', False),
        ('{ filter = "g/#", local_prefix = "x/" }', '{ filter = "g/#", local_prefix = "y/" }', True),
    ],
)
def test_overlapping_directions_need_mqtt_5(tmp_path: Path, out: str, in_: str, collide: bool) -> None:
    toml = f"{HEAD}out = [{out}]\nin = [{in_}]\n"
    assert len(load(tmp_path, toml).bridge) == 1
    old = toml + 'protocol = "3.1.1"'
    if collide:
        with pytest.raises(ConfigError, match=r"bridge\[1\]\.in\[1\]\.filter: .* overlaps what out\[1\] sends"):
            load(tmp_path, old)
    else:
        load(tmp_path, old)


LEVELS = st.lists(st.sampled_from(["a", "b", "+"]), min_size=1, max_size=3)
FILTERS = st.one_of(LEVELS.map("/".join), LEVELS.map(lambda levels: "/".join([*levels, "#"])), st.just("#"))
TOPICS = ["/".join(levels) for size in (1, 2, 3, 4) for levels in product("ab", repeat=size)]


@given(FILTERS, FILTERS)
def test_filters_overlap_where_a_topic_matches_both(one: str, other: str) -> None:
    assert overlap(one, other) == any(matches(one, topic) and matches(other, topic) for topic in TOPICS)


def test_a_shared_subscription(tmp_path: Path) -> None:
    (bridge,) = load(tmp_path, HEAD + 'in = [{ filter = "$share/plant/g/#", remote_prefix = "7/" }]').bridge
    (rule,) = bridge_settings(bridge, "0123456789abcdef")["incoming"]
    assert (rule["filter"], rule["group"], rule["remote_prefix"]) == ("g/#", "plant", "7/")


@pytest.mark.parametrize("protocol", ["3.1.1", "5.0"])
def test_a_shared_subscription_crosses_one_way(tmp_path: Path, protocol: str) -> None:
    """No Local, which makes both ways possible with MQTT 5, is forbidden with it."""
    toml = f'{HEAD}protocol = "{protocol}"\nout = [{{ filter = "g/#" }}]\n'
    with pytest.raises(ConfigError, match=r"overlaps what out\[1\] sends .* shared subscription cannot prevent"):
        load(tmp_path, toml + 'in = [{ filter = "$share/plant/g/#" }]')
    load(tmp_path, toml + 'in = [{ filter = "$share/plant/orders/#" }]')
