"""What a node among several needs is asked for by key, before anything is opened."""

from __future__ import annotations

import pytest

from terrazzo.config.sections import ConfigError, load_config

SOUND = {
    "TERRAZZO_STREAM__KIND": "jetstream",
    "TERRAZZO_STREAM__URL": "nats://localhost:4222, tls://other:4222",
    "TERRAZZO_STREAM__MONITOR_URL": "http://localhost:8222",
    "TERRAZZO_CLUSTER__NODE": "a",
    "TERRAZZO_DATABASE__URL": "postgresql://localhost/t",
    "TERRAZZO_DATABASE__SECRETS_KEY": "ab" * 32,
    "TERRAZZO_AUTH__TOKEN_KEY": "k" * 32,
}


def test_a_node_that_has_all_of_it_is_taken() -> None:
    config = load_config(None, SOUND)
    assert config.stream.kind == "jetstream"
    assert config.cluster.lease_s == 3


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("STREAM__URL", "", "stream.url: is required with stream.kind = jetstream, as in nats://host:4222"),
        ("STREAM__URL", "http://x:1", "stream.url: expected nats://host:4222"),
        ("STREAM__URL", "nats://x", "stream.url: expected nats://host:4222"),
        ("STREAM__URL", "nats://x:99999", "stream.url: expected nats://host:4222"),
        ("STREAM__URL", "nats://u:p@x:4222", "no password in it"),
        ("STREAM__MONITOR_URL", "x:8222", "stream.monitor_url: expected http://host:8222"),
        ("STREAM__REPLICAS", "6", "stream.replicas"),
        ("CLUSTER__NODE", "", "cluster.node: is required"),
        ("CLUSTER__NODE", "a.b", "cluster.node"),
        ("CLUSTER__NAME", "A B", "cluster.name"),
        ("CLUSTER__URL", "10.0.0.1:31507", "cluster.url: expected http://host:8080"),
        ("CLUSTER__URL", "http://u:p@x:1", "no password in it"),
        ("CLUSTER__URL", "http://x:99999", "cluster.url: expected"),
        ("CLUSTER__READS_WAIT_S", "61", "cluster.reads_wait_s"),
        ("STORE__KIND", "influxdb", "store.kind: stream.kind = jetstream needs embedded"),
        ("DATABASE__URL", "", "database.url: stream.kind = jetstream needs PostgreSQL"),
        ("DATABASE__SECRETS_KEY", "", "database.secrets_key: is required"),
        ("AUTH__TOKEN_KEY", "", "auth.token_key: is required"),
    ],
)
def test_what_is_missing_or_wrong_is_named(key: str, value: str, reason: str) -> None:
    given = {**SOUND, f"TERRAZZO_{key}": value, "TERRAZZO_STORE__URL": "http://localhost:8086"}
    with pytest.raises(ConfigError, match=reason):
        load_config(None, given)


def test_bridges_are_refused_as_what_waits_for_them_is_on_one_node() -> None:
    bridge = {"NAME": "n", "URL": "mqtt://x", "IN": '[{topic = "a"}]'}
    given = {**SOUND, **{f"TERRAZZO_BRIDGE__1__{key}": value for key, value in bridge.items()}}
    with pytest.raises(ConfigError, match="bridge"):
        load_config(None, given)
