"""What brokers beside the platform ask over HTTP: EMQX's JSON, plain status, RabbitMQ's words; and who may not ask."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, open_rig, terminal_fields

from openapi_check import problems
from terrazzo.api.transports.http import build_apps
from terrazzo.terminals import login as login_module

TOKEN = "a-token-of-some-length"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

# As EMQX's documents describe them for the bodies of docs/beside-a-broker.md; none was taken from a running EMQX.
EMQX_HEADERS = {"content-type": "application/json", "accept": "application/json", "connection": "keep-alive"}
EMQX_AUTH = '{"username":"u-t1","peerhost":"192.0.2.7","password":"p-t1","clientid":"t1"}'
EMQX_PUBLISH = '{"username":"u-t1","topic":"g/t1/r","peerhost":"192.0.2.7","clientid":"t1","action":"publish"}'
EMQX_SUBSCRIBE = '{"username":"u-t1","topic":"p2p/t1","peerhost":"192.0.2.7","clientid":"t1","action":"subscribe"}'

ALLOW = {"result": "allow", "is_superuser": False}
DENY = {"result": "deny", "is_superuser": False}


@asynccontextmanager
async def asked_rig(folder: Path, *, limits: Mapping[str, Any] | None = None, **broker: Any) -> AsyncIterator[Rig]:
    """A platform that brokers with the token may ask, with the terminals t1 and t2."""
    given = {"login_failures": 0, **(limits or {})}
    async with open_rig(folder, limits=given, broker={"auth_token": TOKEN, **broker}) as rig:
        config = await rig.add_config()
        for uid in ("t1", "t2"):
            await rig.add_terminal(uid, config_id=config, topic="pub:r,a;sub:g/#,site/#,$SYS/#")
        yield rig


async def ask(rig: Rig, path: str, body: str | dict[str, Any], *, headers: Mapping[str, str] = BEARER) -> Any:
    """The JSON of an answer to a question in JSON, which must be 200."""
    text = body if isinstance(body, str) else json.dumps(body)
    async with rig.http.post(path, data=text, headers={**EMQX_HEADERS, **headers}) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def status_of(rig: Rig, path: str, **fields: str) -> int:
    """The status of an answer to a form."""
    async with rig.http.post(path, data=fields, headers=BEARER) as response:
        assert await response.read() == b""
        return response.status


async def word_of(rig: Rig, question: str, **fields: str) -> str:
    """RabbitMQ's answer to a form."""
    names = {name.replace("variable_map_", "variable_map."): value for name, value in fields.items()}
    async with rig.http.post(f"/mqtt/rabbitmq/{question}", data=names, headers=BEARER) as response:
        assert response.status == 200, await response.text()
        return await response.text()


def signed(seconds: int, *, uid: str, pin: str) -> str:
    return f"{seconds}.{hmac.new(pin.encode(), f'{uid}.{seconds}'.encode(), hashlib.sha256).hexdigest()}"


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


async def metric(rig: Rig, name: str) -> float:
    async with rig.http.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


class TestEmqx:
    async def test_requests_as_its_documents_have_them(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            assert await ask(rig, "/mqtt/auth", EMQX_AUTH) == ALLOW
            assert await ask(rig, "/mqtt/acl", EMQX_PUBLISH) == ALLOW
            assert await ask(rig, "/mqtt/acl", EMQX_SUBSCRIBE) == ALLOW
            assert await ask(rig, "/mqtt/auth", EMQX_AUTH.replace("p-t1", "p-t2")) == DENY
            assert await ask(rig, "/mqtt/acl", EMQX_PUBLISH.replace("g/t1", "g/t2")) == DENY
            assert await ask(rig, "/mqtt/acl", EMQX_SUBSCRIBE.replace("p2p/t1", "p2p/t2")) == DENY
            counts = [
                await metric(rig, f"terrazzo_remote_{name}_total")
                for name in ("logins_allowed", "logins_denied", "topics_allowed", "topics_denied")
            ]
            assert counts == [1, 1, 2, 2]

    async def test_why_a_terminal_was_refused_is_told_as_everywhere(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            await ask(rig, "/mqtt/auth", EMQX_AUTH.replace("p-t1", "wrong"))
            await ask(rig, "/mqtt/acl", EMQX_PUBLISH.replace("g/t1", "g/t2"))
            found = await rig.call("get_terminal_status", terminal_id="t1")
            told = {(each["reason"], each["address"]) for each in found["refusals"]}
            assert told == {("wrong_pin", "192.0.2.7"), ("publish_not_allowed", "192.0.2.7")}

    async def test_a_signed_time_serves_once(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            await rig.add_terminal("t3", mode="auto")
            password = signed(int(time.time()), uid="t3", pin="p-t3")
            question = {"clientid": "t3", "username": "u-t3", "password": password}
            assert await ask(rig, "/mqtt/auth", question) == ALLOW
            assert await ask(rig, "/mqtt/auth", question) == DENY
            assert await ask(rig, "/mqtt/auth", {**question, "password": "p-t3"}) == DENY

    async def test_what_a_form_cannot_carry_is_refused_with_its_reason(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            await rig.add_terminal("t3", dixie=1)
            question = {"clientid": "t3", "username": "u-t3", "password": "p-t3"}
            assert await ask(rig, "/mqtt/auth", question) == DENY
            found = await rig.call("get_terminal_status", terminal_id="t3")
            assert [each["reason"] for each in found["refusals"]] == ["scram_required"]

    async def test_failures_slow_down_as_at_the_own_broker(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path, limits={"login_failures": 3}) as rig:
            wrong = EMQX_AUTH.replace("p-t1", "wrong")
            assert [await ask(rig, "/mqtt/auth", wrong) for _ in range(3)] == [DENY] * 3
            assert await ask(rig, "/mqtt/auth", EMQX_AUTH) == DENY, "too many failures at this address"
            assert rig.platform.terminals.login.stats.throttled == 1
            elsewhere = EMQX_AUTH.replace("192.0.2.7", "192.0.2.8")
            assert await ask(rig, "/mqtt/auth", elsewhere) == ALLOW, "the address is the terminal's, not the broker's"

    async def test_a_disabled_terminal_is_out_at_once(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            assert await ask(rig, "/mqtt/acl", EMQX_PUBLISH) == ALLOW
            disabled = terminal_fields("t1", await rig.add_config()) | {"is_available": 0}
            await rig.call("update_terminal", **disabled)
            assert await ask(rig, "/mqtt/acl", EMQX_PUBLISH) == DENY
            assert await ask(rig, "/mqtt/auth", EMQX_AUTH) == DENY


class TestTopics:
    async def test_what_another_broker_cannot_keep_apart_is_refused(self, tmp_path: Path) -> None:
        """It neither completes topics nor keeps companies apart, so what needs that is not allowed there."""
        async with asked_rig(tmp_path) as rig:
            await rig.add_terminal("s1", "stranger", topic="pub:r;sub:g/#,g/t1/#,+/t1/#,#,p2p/t1")

            async def may(uid: str, action: str, topic: str) -> bool:
                fields = {"clientid": uid, "username": f"u-{uid}", "topic": topic, "action": action}
                return bool(await ask(rig, "/mqtt/acl", fields) == ALLOW)

            assert await may("t1", "publish", "g/t1/r")
            assert not await may("t1", "publish", "g/r"), "nobody would complete it"
            assert not await may("t1", "publish", "g/t1/v"), "not among its channels"
            assert await may("t1", "subscribe", "g/t1/#")
            assert await may("t1", "subscribe", "g/t2/r")
            assert await may("t1", "subscribe", "$share/x/g/t2/r")
            assert await may("t1", "subscribe", "site/7/#")
            assert not await may("t1", "subscribe", "$SYS/#")
            assert not await may("t1", "subscribe", "g/+/r")
            for granted in ("g/#", "g/t1/r", "+/t1/#", "#", "p2p/t1", "$share/x/g/#"):
                assert not await may("s1", "subscribe", granted), f"{granted} is another company's too"

    async def test_another_user_name_is_another_terminal(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            assert await ask(rig, "/mqtt/acl", EMQX_PUBLISH.replace("u-t1", "u-t2")) == DENY
            assert await ask(rig, "/mqtt/acl", EMQX_PUBLISH.replace('"t1"', '"nobody"')) == DENY


class TestStatus:
    async def test_forms_of_plugins_for_mosquitto(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            login = {"username": "u-t1", "password": "p-t1", "clientid": "t1"}
            assert await status_of(rig, "/mqtt/status/auth", **login) == 200
            assert await status_of(rig, "/mqtt/status/auth", **{**login, "password": "p-t1 "}) == 403
            asked = {"username": "u-t1", "clientid": "t1"}
            allowed = {(acc, topic) for acc in "1234" for topic in ("g/t1/r", "p2p/t1") for status in [
                await status_of(rig, "/mqtt/status/acl", **asked, topic=topic, acc=acc)] if status == 200}  # fmt: skip
            assert allowed == {("1", "g/t1/r"), ("1", "p2p/t1"), ("2", "g/t1/r"), ("3", "g/t1/r"), ("4", "g/t1/r"),
                               ("4", "p2p/t1")}  # fmt: skip


class TestRabbitMq:
    async def test_users_resources_and_routing_keys(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            user = {"username": "u-t1", "password": "p-t1", "client_id": "t1", "vhost": "/"}
            assert await word_of(rig, "user", **user) == "allow"
            assert await word_of(rig, "user", **{**user, "client_id": "t2"}) == "deny"
            assert await word_of(rig, "user", username="u-t1", password="p-t1") == "deny", "AMQP is not for terminals"
            assert await word_of(rig, "vhost", username="u-t1", vhost="/", ip="192.0.2.7") == "allow"
            about = {"username": "u-t1", "vhost": "/", "resource": "queue", "permission": "configure"}
            assert await word_of(rig, "resource", **about, name="mqtt-subscription-t1qos1") == "allow"
            for name in ("mqtt-subscription-t2qos1", "mqtt-subscription-t1qos2", "mqtt-subscription-t1", "orders", ""):
                assert await word_of(rig, "resource", **about, name=name) == "deny", name
            about = {**about, "resource": "exchange", "permission": "write"}
            assert await word_of(rig, "resource", **about, name="amq.topic") == "allow"
            assert await word_of(rig, "resource", **about, name="amq.default") == "deny"
            assert await word_of(rig, "resource", **{**about, "permission": "configure"}, name="amq.topic") == "deny"
            key = {"username": "u-t1", "vhost": "/", "resource": "topic", "name": "amq.topic",
                   "variable_map_client_id": "t1"}  # fmt: skip
            assert await word_of(rig, "topic", **key, permission="write", routing_key="g.t1.r") == "allow"
            assert await word_of(rig, "topic", **key, permission="write", routing_key="g.t2.r") == "deny"
            assert await word_of(rig, "topic", **key, permission="read", routing_key="g.t1.#") == "allow"
            assert await word_of(rig, "topic", **key, permission="read", routing_key="g.*.r") == "deny"
            assert (
                await word_of(rig, "topic", **{**key, "name": "x"}, permission="write", routing_key="g.t1.r") == "deny"
            )


class TestMisuse:
    async def test_it_is_off_unless_configured(self, tmp_path: Path) -> None:
        async with open_rig(tmp_path) as rig:
            for path in ("/mqtt/auth", "/mqtt/status/acl", "/mqtt/rabbitmq/user"):
                async with rig.http.post(path, data=EMQX_AUTH, headers=BEARER) as response:
                    assert response.status == 404

    async def test_without_the_token_nothing_is_answered(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            wrong = [None, "Bearer", f"Bearer {TOKEN}x", TOKEN, f"Bearer {rig.tokens['root']}", "Basic \xff",
                     basic("rabbit", f"{TOKEN}x"), basic(TOKEN, "")]  # fmt: skip
            for header in wrong:
                headers = {} if header is None else {"Authorization": header}
                async with rig.http.post("/mqtt/auth", data=EMQX_AUTH, headers=headers) as response:
                    assert response.status == 401, header
                    assert "allow" not in await response.text()
            assert await metric(rig, "terrazzo_remote_askers_refused_total") == len(wrong)
            assert rig.platform.terminals.login.stats.accepted == 0, "nobody's login was tried"
            right = {"Authorization": basic("rabbit", TOKEN)}
            assert await ask(rig, "/mqtt/auth", EMQX_AUTH, headers=right) == ALLOW

    @pytest.mark.parametrize(("networks", "status"), [(("127.0.0.1", "::1"), 200), (("192.0.2.0/24",), 403)])
    async def test_only_these_addresses_may_ask(self, tmp_path: Path, networks: tuple[str, ...], status: int) -> None:
        async with asked_rig(tmp_path, auth_token="", auth_from=networks) as rig:
            claimed = {"X-Forwarded-For": "192.0.2.9"}  # of no proxy that is trusted
            async with rig.http.post("/mqtt/auth", data=EMQX_AUTH, headers=claimed) as response:
                assert response.status == status

    async def test_what_cannot_be_read_is_denied(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            deep = "[" * 10_000
            bodies = ["", "{", "[]", deep, '{"clientid": ["t1"]}', '{"clientid": "t1"}', '{"clientid":"","topic":"x"}',
                      json.dumps({str(number): "" for number in range(100)})]  # fmt: skip
            for body in bodies:
                assert await ask(rig, "/mqtt/acl", body) == DENY, body[:50]
            assert await ask(rig, "/mqtt/acl", EMQX_PUBLISH.replace("publish", "own")) == DENY
            async with rig.http.post(
                "/mqtt/status/auth",
                data="username=u-t1&username=u-t1&password=p-t1&clientid=t1",
                headers={**BEARER, "Content-Type": "application/x-www-form-urlencoded"},
            ) as response:
                assert response.status == 403, "which one counts is nobody's guess"
            assert await metric(rig, "terrazzo_remote_malformed_total") == len(bodies) + 2

    async def test_a_long_body_is_not_read(self, tmp_path: Path) -> None:
        async with asked_rig(tmp_path) as rig:
            for headers in (BEARER, {}):
                body = json.dumps({"clientid": "t1", "username": "u-t1", "password": "p" * 100_000})
                async with rig.http.post("/mqtt/auth", data=body, headers=headers) as response:
                    assert response.status == (413 if headers else 401)

    async def test_an_unknown_client_costs_what_a_wrong_password_costs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The answers are the same to the byte, after the same work."""
        checked: list[str] = []
        check = login_module._check_password

        def counted(username: str, password: bytes, terminal: Any, uid: str) -> Any:
            checked.append(uid)
            return check(username, password, terminal, uid)

        monkeypatch.setattr(login_module, "_check_password", counted)
        async with asked_rig(tmp_path) as rig:
            answers = set()
            for client_id in ("t1", "nobody"):
                question = {"clientid": client_id, "username": "u-t1", "password": "wrong"}
                async with rig.http.post("/mqtt/auth", json=question, headers=BEARER) as response:
                    told = {name: value for name, value in response.headers.items() if name != "Date"}
                    answers.add((response.status, await response.read(), tuple(sorted(told.items()))))
            assert len(answers) == 1
            assert checked == ["t1", "nobody"]


async def test_the_openapi_document_has_each_question_where_it_may_be_asked(tmp_path: Path) -> None:
    async with asked_rig(tmp_path) as rig:
        async with rig.http.get("/openapi.json") as response:
            document = await response.json()
        routes = {resource.canonical for resource in build_apps(rig.services).http.router.resources()}
        described = {path for path in document["paths"] if path.startswith("/mqtt/")}
        assert described == {path for path in routes if path.startswith("/mqtt/")}
        assert len(described) == 8
        assert problems(document) == []
        for path in described:  # what it calls required is asked for, and nothing else is
            body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            fields = dict.fromkeys(body["required"], "read")
            malformed = rig.services.broker_asking.access.stats.malformed
            async with rig.http.post(path, json=fields, headers=BEARER) as response:
                assert response.status in (200, 403)
            expected = malformed + ("action" in fields)  # "read" is no action
            assert rig.services.broker_asking.access.stats.malformed == expected, path
