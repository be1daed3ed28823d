"""``terrazzo support-bundle``: what helps is in it, and none of the secrets that were put everywhere."""

from __future__ import annotations

import ast
import json
import logging
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import paho.mqtt.client as paho
import pytest
from msgspec import inspect

from certificate_authority import Authority
from loaded_process import run_loaded_text
from running import Platform, wait_for
from support import free_port
from terrazzo.cli.support.command import HOLDS, LEFT_OUT
from terrazzo.cli.support.secrets_left_out import SHOWN_TEXTS, Scrubber, shown_config
from terrazzo.config.bridge import BridgeSection, BridgeTopicSection
from terrazzo.config.sections import Config, load_config
from terrazzo.runtime.recent_log import RecentLog
from terrazzo.runtime.support_answers import CUT, cut

ROOT = Path(__file__).parents[2]
MOST_BYTES = 5_000_000
TOML = """
[[messenger.project]]
id = 1
name = "plant"
[messenger.project.email]
host = "{mail_host}"
port = {port}
tls = "off"
sender = "{sender}@example.org"
[messenger.project.android]
url = "http://{provider_host}/{provider_key}"
body = '{{"key": "{body_key}"}}'
[[bridge]]
name = "uplink"
url = "mqtt://{bridge_host}:{port}"
username = "{bridge_user}"
password = "{bridge_password}"
[[bridge.out]]
filter = "{bridge_topic}/#"
"""


def planted(*names: str) -> dict[str, str]:
    return {name: f"zz{secrets.token_hex(9)}" for name in names}


@pytest.fixture(scope="module")
def secret() -> dict[str, str]:
    """What must not be found, by what it is."""
    return planted(
        *("mail_host", "sender", "provider_host", "provider_key", "body_key", "bridge_host", "bridge_user"),
        *("bridge_password", "bridge_topic", "terminal", "terminal_user", "payload", "key_of_payload", "webhook"),
        *("webhook_secret", "object", "user", "password", "metrics_token", "client_id", "mqtt_user", "environment"),
        *("wrong_password", "unknown_user", "stray"),
    ) | {"token_key": secrets.token_hex(32), "admin": f"Zz-{secrets.token_hex(12)}", "pin": secrets.token_hex(8)}


@pytest.fixture(scope="module")
def platform(secret: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "terrazzo.toml").write_text(TOML.format(**secret, port=free_port()))
    pair = Authority(folder / "authority").issue("localhost")
    env = {
        "TERRAZZO_AUTH__TOKEN_KEY": secret["token_key"],
        "TERRAZZO_ADMIN__PASSWORD": secret["admin"],
        "TERRAZZO_METRICS__TOKEN": secret["metrics_token"],
        "TERRAZZO_MQTT__TLS_PORT": str(free_port()),
        "TERRAZZO_MQTT__TLS_CERT": str(pair.cert),
        "TERRAZZO_MQTT__TLS_KEY": str(pair.key),
        "SOME_API_KEY": secret["environment"],
    }
    secret["tls_key"] = pair.key.read_text().splitlines()[3]
    with Platform(folder / "data", env=env, arguments=("--config", str(folder / "terrazzo.toml"))) as running:
        running.login(password=secret["admin"])
        fill(running, secret)
        yield running


def fill(platform: Platform, secret: dict[str, str]) -> None:
    """Records with secrets, and events that the log tells with text of others."""
    platform.add_terminal(
        secret["terminal"], platform.add_config(), username=secret["terminal_user"], pin=secret["pin"]
    )
    platform.call("create_user", username=secret["user"], password=secret["password"], role="viewer")
    secret["api_key"] = platform.call("create_api_key", name="k", role="admin")["key"]
    secret["token"] = str(platform.token)
    hook = {"url": f"https://hooks.example/{secret['webhook']}", "secret": secret["webhook_secret"]}
    platform.call("create_rule", name="r", kinds=["event"], channel="webhook", **hook)
    report(platform, secret["terminal"], secret["terminal_user"], secret["pin"], secret)
    report(platform, secret["client_id"], secret["mqtt_user"], secret["wrong_password"], secret, refused=True)
    platform.ask("login", username=secret["unknown_user"], password=secret["wrong_password"])
    for name in ("secrets-key", "broker-id"):
        secret[name] = (platform.data / name).read_text().strip()
    (platform.data / f"{secret['stray']}.txt").write_text("a file of somebody's")


def report(platform: Platform, uid: str, user: str, pin: str, secret: dict[str, str], *, refused: bool = False) -> None:
    """Publishes a report, and one that can't be read."""
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, uid, protocol=paho.MQTTv5, reconnect_on_failure=False)
    client.username_pw_set(user, pin)
    client.connect("127.0.0.1", platform.mqtt)
    client.loop_start()
    try:
        if not refused:
            wait_for(client.is_connected, "the terminal is there")
            body = json.dumps({secret["key_of_payload"]: secret["payload"]})
            for payload in (body, f"{{{secret['payload']}"):
                client.publish(f"g/{uid}/r", payload, qos=1).wait_for_publish(10)
        else:
            wait_for(lambda: not client.is_connected(), "it is refused")
    finally:
        client.disconnect()
        client.loop_stop()


def bundle(platform: Platform, path: Path, *more: str) -> dict[str, str]:
    command = ["-m", "terrazzo", "support-bundle", str(path), "--data", str(platform.data), *more]
    done = run_loaded_text([*command, *platform.arguments], env=platform.environment)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        return {"printed": done.stdout + done.stderr} | {name: file.read(name).decode() for name in file.namelist()}


@pytest.fixture(scope="module")
def running(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return bundle(platform, tmp_path_factory.mktemp("zip") / "b.zip", "--json")


def found(parts: dict[str, str], secret: dict[str, str]) -> list[tuple[str, str]]:
    return [(what, name) for what, text in secret.items() for name, part in parts.items() if text in part]


def test_of_a_platform_that_runs_everything_is_there(running: dict[str, str]) -> None:
    assert set(running) == {"printed", "README.txt", *HOLDS}
    told = json.loads(running["printed"])
    assert (told["holds"], told["missing"], told["left_out"]) == (sorted(HOLDS), {}, list(LEFT_OUT))
    assert told["bytes"] < MOST_BYTES
    assert all(each in running["README.txt"] for each in (*HOLDS, *LEFT_OUT))


def test_what_helps_is_in_it(running: dict[str, str]) -> None:
    parts = {name: json.loads(text) for name, text in running.items() if name.endswith(".json")}
    assert parts["versions.json"]["packages"]["aiohttp"]
    assert parts["configuration.json"]["mqtt"]["tls_key"] == "<set>"
    assert parts["configuration.json"]["limits"]["connections"] > 0
    assert parts["configuration.json"]["bridge"][0]["overflow"] == "drop_oldest"
    assert parts["configuration.json"]["http"]["host"] == "127.0.0.1"
    assert {each["part"] for each in parts["doctor.json"]} >= {"packages", "database", "store", "tasks"}
    assert parts["data-folder.json"]["entries"]["terrazzo.db"]["bytes"] > 0
    assert parts["data-folder.json"]["entries"]["(other)"]["files"] >= 1
    database = parts["database.json"]
    assert database["revision"] == database["revision_needed"]
    assert (database["state"], database["rows"]["terminal"], database["rows"]["rule"]) == ("up to date", 1, 1)
    assert "process.py" in running["running/threads.txt"]
    assert "terrazzo_task_up{" in running["running/metrics.txt"]
    assert int(parts["running/process.json"]["open_descriptors"]) > 5


def test_the_log_is_in_it_without_what_others_sent(running: dict[str, str], platform: Platform) -> None:
    lines = json.loads(running["running/log.json"])
    assert lines
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert all(line["logger"].startswith("terrazzo") or line["message"] == "<left out>" for line in lines)


def test_no_secret_is_in_it(running: dict[str, str], secret: dict[str, str], platform: Platform) -> None:
    assert found(running, secret) == []
    kept = b"".join(path.read_bytes() for path in platform.data.parent.rglob("*") if path.is_file())
    assert sum(text.encode() in kept for text in secret.values()) > 15, "what is looked for was really there"


def test_it_is_its_owners_and_takes_nobodys_place(platform: Platform, tmp_path: Path) -> None:
    path = tmp_path / "once.zip"
    bundle(platform, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = ["-m", "terrazzo", "support-bundle", str(path), "--data", str(platform.data), *platform.arguments]
    done = run_loaded_text(again, env=platform.environment)
    assert (done.returncode, done.stderr) == (2, f"terrazzo: FILE: {path} is there already; name another one\n")


def test_of_a_folder_where_nothing_runs_it_says_what_is_missing(tmp_path: Path) -> None:
    path, data = tmp_path / "b.zip", tmp_path / "data"
    command = ["-m", "terrazzo", "support-bundle", str(path), "--data", str(data)]
    done = run_loaded_text(command, env={**os.environ, "TERRAZZO_HTTP__PORT": str(free_port())})
    assert done.returncode == 0, done.stderr
    assert "without running/metrics.txt: no platform runs on the data folder" in done.stdout
    with zipfile.ZipFile(path) as file:
        assert json.loads(file.read("data-folder.json")) == {"exists": False}
        assert json.loads(file.read("database.json"))["state"] == "not there, or to be migrated by the next start"
    assert not data.exists()


def filled(kind: inspect.Type, number: list[int]) -> Any:
    """A value of a type with a planted text wherever one may stand."""
    number[0] += 1
    if isinstance(kind, inspect.UnionType):
        return filled(next((each for each in kind.types if isinstance(each, inspect.StrType)), kind.types[0]), number)
    if isinstance(kind, inspect.StrType):
        return f"planted-{number[0]}"
    if isinstance(kind, inspect.StructType):
        return kind.cls(**{field.name: filled(field.type, number) for field in kind.fields})
    if isinstance(kind, inspect.VarTupleType):
        return (filled(kind.item_type, number),)
    if isinstance(kind, inspect.DictType):
        return {f"planted-{number[0]}": filled(kind.value_type, number)}
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    return 7


def test_of_every_key_that_takes_a_text_none_is_shown_unless_it_is_named() -> None:
    config = filled(inspect.type_info(Config), [0])
    shown = shown_config(config)
    texts = json.dumps({name: keys for name, keys in shown.items() if name not in ("http", "websocket", "tcp", "mqtt")})
    assert texts.count("planted-") == sum(key.startswith(("api.", "time.", "files.")) for key in SHOWN_TEXTS)
    assert str(msgspec.to_builtins(config)).count("planted-") > 60, "there was something to be left out"
    assert json.dumps(shown).count("planted-") == len(SHOWN_TEXTS)
    suspicious = ("password", "secret", "token", "key", "user", "pin", "url", "body", "target", "sender")
    assert not [key for key in SHOWN_TEXTS if any(word in key for word in suspicious)]


def test_text_of_others_is_taken_out_of_the_log() -> None:
    log, logger = RecentLog(lambda: ["ingest"], most_lines=3), logging.Logger("terrazzo.x")
    logger.addHandler(log)
    logger.warning("first %s", "gone, as only three are kept")
    logger.warning("task %s of %s waits %.1f s: %s", "ingest", "hunter22", 1.5, ValueError("hunter22"))
    logger.warning("%(who)s did it", {"who": "hunter22"})
    try:
        raise KeyError("hunter22") from ValueError("hunter22")
    except KeyError:
        logger.exception("failed")
    told = log.lines()
    assert [line["message"] for line in told] == [
        "task ingest of <left out> waits 1.5 s: ValueError",
        "<left out> did it",
        "failed",
    ]
    assert [each["class"] for each in told[2]["errors"]] == ["KeyError", "ValueError"]
    assert "test_cli_support_bundle.py" in told[2]["errors"][0]["at"][0]
    assert "hunter22" not in json.dumps(told)


def test_a_librarys_own_words_and_what_cannot_be_put_in() -> None:
    log = RecentLog(list)
    library, ours = logging.Logger("asyncio"), logging.Logger("terrazzo.y")
    library.addHandler(log)
    ours.addHandler(log)
    library.error("Task <Task coro=<f(pin='hunter22')>> failed")
    ours.error("it took %d s", 12)
    ours.error("plain %")
    assert [line["message"] for line in log.lines()] == ["<left out>", "it took 12 s", "plain %"]


def test_known_secrets_and_what_looks_like_one_are_taken_out() -> None:
    scrubber = Scrubber(["abc", "mqtt", 'a "quoted" secret', "0123456789abcdef"])
    assert scrubber.clean("terrazzo_mqtt_up of mqtt, abc") == "terrazzo_mqtt_up of <left out>, abc"
    assert scrubber.clean(json.dumps({"a": 'a "quoted" secret'})) == '{"a": "<left out>"}'
    assert scrubber.clean("x0123456789abcdefx") == "x<left out>x"
    assert scrubber.clean("at https://user:pw@host/path?key=1 now") == "at https://<left out> now"
    assert scrubber.clean("Authorization: Bearer abcdefgh.ij") == "Authorization: Bearer <left out>"
    assert Scrubber([]).clean("all") == "all"


def test_a_part_is_cut_at_its_bound() -> None:
    assert cut("é" * 10, most_bytes=20) == "é" * 10
    assert cut("é" * 10, most_bytes=7) == "ééé" + CUT


LOG_METHODS = ("debug", "info", "warning", "error", "exception", "critical", "log")


def log_calls() -> Iterator[tuple[str, ast.expr]]:
    """Each call of a module's logger with its text."""
    for folder in ("platform/terrazzo", "broker", "adapters"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                    continue
                owner = node.func.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                if node.func.attr in LOG_METHODS and name in ("_log", "log", "_sparse_log"):
                    text = node.args[1] if node.func.attr == "log" and len(node.args) > 1 else node.args[0]
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def test_the_text_of_each_log_line_stands_in_the_source() -> None:
    """A text that is put together would bring values into what is handed on."""
    calls = list(log_calls())
    assert len(calls) > 150
    made = [at.split(":")[0] for at, text in calls if isinstance(text, ast.JoinedStr | ast.BinOp | ast.Call)]
    assert made == ["broker/terrazzo_broker/asked_hooks.py"], "which puts in the name of one of its own methods"


def test_shown_texts_are_keys_that_there_are() -> None:
    config = msgspec.structs.replace(
        load_config(None, {}),
        bridge=(BridgeSection(name="b", url="mqtt://h", outgoing=(BridgeTopicSection(filter="f"),)),),
    )
    shown = shown_config(config)
    assert all(key.split(".")[1] in shown[key.split(".")[0]] for key in SHOWN_TEXTS)
    assert shown["bridge"][0]["out"] == [{"filter": "<set>", "qos": 1, "local_prefix": "", "remote_prefix": ""}]
