"""MQTT.js logs in to the embedded broker: by SCRAM, with a plain password, over 5.0 and 3.1.1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mqttjs import installed, run_mqttjs
from scram_broker import ScramBroker, scram_broker
from waiting import until

METHODS = ["SCRAM-SHA-1", "SCRAM-SHA-256"]


@pytest.fixture(scope="session", autouse=True)
def mqttjs() -> Path:
    return installed()


@pytest.fixture
async def server() -> AsyncIterator[ScramBroker]:
    async with scram_broker(plain={"plain": "word"}, scram={"user": "pencil", "a=b,c": "x"}) as running:
        yield running


async def run(script: str, server: ScramBroker, **options: Any) -> dict[str, Any]:
    common = {"port": server.port, "clientId": "js-1", "username": "user", "password": "pencil"}
    return await asyncio.to_thread(run_mqttjs, script, **{**common, **options})


@pytest.mark.parametrize("method", METHODS)
async def test_scram_lets_in_and_the_server_proves_itself(server: ScramBroker, method: str) -> None:
    outcome = await run("login", server, method=method)
    assert (outcome["connected"], outcome["reason"], outcome["serverVerified"]) == (True, 0, True)
    (request,) = server.hooks.requests
    assert (request.client_id, request.username, request.password) == ("js-1", "user", None)
    assert request.auth_method == method


@pytest.mark.parametrize("method", METHODS)
async def test_scram_again_on_the_live_connection(server: ScramBroker, method: str) -> None:
    outcome = await run("login", server, method=method, reauthenticate=True)
    assert outcome["reauthenticated"] is True
    assert [request.reauthentication for request in server.hooks.requests] == [False, True]


async def test_scram_with_a_user_name_that_needs_escaping(server: ScramBroker) -> None:
    assert (await run("login", server, method="SCRAM-SHA-1", username="a=b,c", password="x"))["connected"]


@pytest.mark.parametrize("method", METHODS)
async def test_scram_with_a_wrong_password_is_refused(server: ScramBroker, method: str) -> None:
    outcome = await run("login", server, method=method, password="pen")
    assert (outcome["connected"], outcome["reason"]) == (False, 0x87)


async def test_a_server_that_cannot_sign_is_not_believed(server: ScramBroker) -> None:
    server.hooks.forge_signature = True
    outcome = await run("login", server, method="SCRAM-SHA-1")
    assert (outcome["connected"], outcome["error"]) == (False, "bad server signature")


@pytest.mark.parametrize("protocol", [4, 5])
async def test_a_plain_password_does_not_replace_scram(server: ScramBroker, protocol: int) -> None:
    outcome = await run("login", server, protocolVersion=protocol)
    assert (outcome["connected"], outcome["reason"]) == (False, 5 if protocol == 4 else 0x87)


@pytest.mark.parametrize("protocol", [4, 5])
async def test_a_plain_password_lets_in(server: ScramBroker, protocol: int) -> None:
    outcome = await run("login", server, protocolVersion=protocol, username="plain", password="word")
    assert (outcome["connected"], outcome["reason"], outcome["serverVerified"]) == (True, 0, False)


@pytest.mark.parametrize("protocol", [4, 5])
async def test_a_wrong_or_missing_password_is_refused(server: ScramBroker, protocol: int) -> None:
    for password in ("wrong", None):
        outcome = await run("login", server, protocolVersion=protocol, username="plain", password=password)
        assert (outcome["connected"], outcome["reason"]) == (False, 5 if protocol == 4 else 0x87)


@pytest.mark.parametrize("protocol", [4, 5])
async def test_publish_and_subscribe(server: ScramBroker, protocol: int) -> None:
    messages = [{"topic": "g/js-1/r", "payload": "one", "qos": qos} for qos in (0, 1, 2)]
    job = asyncio.create_task(
        run(
            "publish_subscribe",
            server,
            protocolVersion=protocol,
            username="plain",
            password="word",
            subscribe="p2p/js-1",
            publish=messages,
            receive=1,
            answer="done",
        )
    )
    await until(lambda: server.hooks.subscribed or job.done(), "the subscription")
    assert server.command("js-1", b"go", b"\x01\x02")
    outcome = await job
    assert outcome["granted"] == 1
    assert [message["reason"] for message in outcome["published"]] == [None, 0, 0]
    (received,) = outcome["received"]
    assert (received["topic"], received["payload"], received["qos"]) == ("p2p/js-1", "go", 1)
    assert received["correlation"] == ("0102" if protocol == 5 else None)
    sent = [(topic, payload) for _, topic, payload, _ in server.hooks.taken if topic == "g/js-1/r"]
    assert sent == [("g/js-1/r", b"one")] * 3
    answers = [(payload, mark) for _, topic, payload, mark in server.hooks.taken if topic == "g/js-1/n"]
    assert answers == ([(b"done", b"\x01\x02")] if protocol == 5 else [])
    await until(lambda: server.outcomes, "the PUBACK of the command")


async def test_what_is_not_allowed_is_refused_with_its_reason(server: ScramBroker) -> None:
    outcome = await run(
        "publish_subscribe",
        server,
        method="SCRAM-SHA-1",
        subscribe="g/#",
        publish=[{"topic": "g/other/r", "payload": "x", "qos": 1}],
    )
    assert outcome["granted"] == 0x87
    assert outcome["published"][0]["reason"] == 0x87


@pytest.mark.parametrize(
    ("method", "nonce", "server_first", "proof", "server_final"),
    [
        (
            "SCRAM-SHA-1",  # RFC 5802, section 5
            "fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        (
            "SCRAM-SHA-256",  # RFC 7677, section 3
            "rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ],
)
def test_the_scripts_own_scram_gives_the_answers_of_the_rfcs(
    method: str, nonce: str, server_first: str, proof: str, server_final: str
) -> None:
    outcome = run_mqttjs(
        "scram_known_answer", method=method, nonce=nonce, serverFirst=server_first, serverFinal=server_final
    )
    assert outcome["final"].endswith(f",p={proof}")
    assert outcome["verified"] is True
