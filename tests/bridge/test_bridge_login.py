"""Getting in at the remote broker: TLS with and without client certificates, passwords, and what is said if not."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bridge_rig import Peer, bridge_toml, metric, start_platform, stored, terminal, wait_connected

from certificate_authority import Authority, Pair
from own_platform import Platform
from running import Mosquitto, wait_for
from support import free_port, require_program
from terrazzo.config.sections import Config, ConfigError, load_config

SECRET = "a secret of the bridge"
OUT = [{"filter": "g/t1/#", "remote_prefix": "plant/"}]
IN = [{"filter": "g/t2/#"}]


class SecureMosquitto(Mosquitto):
    """Beside its plain listener, one that asks for a certificate of the authority."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.tls_port = free_port()
        pair = authority.issue("remote")
        secure = (f"listener {self.tls_port} 127.0.0.1", f"cafile {authority.ca}", f"certfile {pair.cert}")
        asking = (f"keyfile {pair.key}", "require_certificate true", "user root")
        super().__init__(folder, lines=("allow_anonymous true", *secure, *asking))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def secure(tmp_path: Path, authority: Authority) -> Iterator[SecureMosquitto]:
    with SecureMosquitto(tmp_path / "remote", authority) as running:
        yield running


def tls_keys(authority: Authority, pair: Pair) -> dict[str, str]:
    return {"tls_ca": str(authority.ca), "tls_cert": str(pair.cert), "tls_key": str(pair.key)}


@pytest.mark.parametrize("protocol", ["5.0", "3.1.1"])
def test_both_directions_over_tls_with_a_client_certificate(
    tmp_path: Path, secure: SecureMosquitto, authority: Authority, protocol: str
) -> None:
    keys = tls_keys(authority, authority.issue("plant"))
    toml = bridge_toml(f"mqtts://127.0.0.1:{secure.tls_port}", out=OUT, in_=IN, protocol=protocol, **keys)
    large = [json.dumps({"n": number, "text": "x" * 100_000}) for number in range(30)]
    with start_platform(tmp_path, toml) as platform, Peer(secure.port).subscribe("plant/#") as there:
        wait_connected(platform)
        with terminal(platform) as here:
            here.publish_all("g/t1/r", large)
            there.publish_all("g/t2/r", large)
        assert there.wait_for(30) == large
        wait_for(lambda: metric(platform, "received") == 30, "those of the other side")
        assert [each["n"] for each in stored(platform, "t2")] == list(range(30))


def test_a_broker_of_another_authority_is_not_trusted(
    tmp_path: Path, secure: SecureMosquitto, authority: Authority
) -> None:
    keys = tls_keys(Authority(tmp_path / "elsewhere", "Elsewhere"), authority.issue("plant"))
    toml = bridge_toml(f"mqtts://localhost:{secure.tls_port}", out=OUT, **keys)
    with start_platform(tmp_path, toml) as platform:
        wait_for(lambda: "certificate verify failed" in platform.log.read_text(), "the reason in the log")
        with terminal(platform) as here:
            here.publish("g/t1/r", '{"a": 1}')  # waits on disk
        assert metric(platform, "connected") == 0
        assert metric(platform, "queued") == 1


def test_files_that_are_no_certificates_are_fatal_with_the_key(tmp_path: Path, authority: Authority) -> None:
    pair, junk = authority.issue("plant"), tmp_path / "junk.pem"
    junk.write_text("nothing")
    encrypted = authority.issue("locked", passphrase=b"secret")
    for keys, key in (
        ({"tls_ca": str(junk)}, "bridge[1].tls_ca: "),
        ({"tls_cert": str(junk), "tls_key": str(pair.key)}, "bridge[1].tls_cert: "),
        ({"tls_cert": str(encrypted.cert), "tls_key": str(encrypted.key)}, "bridge[1].tls_cert: "),
    ):
        file = tmp_path / "terrazzo.toml"
        file.write_text(bridge_toml("mqtts://127.0.0.1:1", out=OUT, **keys))
        config = load_config(file, {"TERRAZZO_DATA__DIR": str(tmp_path / "data")})
        assert key in start_and_fail(config)


def start_and_fail(config: Config) -> str:
    with pytest.raises(ConfigError) as refused:
        asyncio.run(Platform(config).start())
    return str(refused.value)


def test_a_password_and_what_a_wrong_one_leads_to(tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    command = [require_program("mosquitto_passwd"), "-b", "-c", str(passwords), "plant", SECRET]
    subprocess.run(command, check=True, capture_output=True)
    passwords.chmod(0o644)
    lines = ("allow_anonymous false", f"password_file {passwords}", "user root")
    with Mosquitto(tmp_path / "remote", lines=lines) as remote:
        url = f"mqtt://127.0.0.1:{remote.port}"
        toml = bridge_toml(url, name="right", username="plant", password=SECRET, out=OUT)
        toml += bridge_toml(url, name="wrong", username="plant", password="guess", out=OUT)
        with start_platform(tmp_path, toml) as platform:
            wait_connected(platform, "right")
            wait_for(lambda: "login refused: Not authorized" in platform.log.read_text(), "the reason in the log")
            assert metric(platform, "connected", "wrong") == 0
            assert SECRET not in platform.log.read_text()
            assert "guess" not in platform.log.read_text()
