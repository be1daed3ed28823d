"""Terminals on a real broker: login, permissions, changed records, presence; in both protocols."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from mqtt5 import ConnAckReasonCode

from platform_site import Site, peers, running_site, unix_s, until
from terrazzo_broker.hooks import ConnectRequest
from terrazzo_simulators.link import LinkOptions, LoginRefused
from terrazzo_simulators.scram_link import ScramLink
from terrazzo_simulators.spec import TerminalSpec

PUBREL_UNKNOWN = 0x92  # paho goes on with PUBREL after a PUBREC that refused; that is how it shows
WRONG, NOT_AUTHORIZED, BAD_METHOD, THROTTLED, ADMINISTRATIVE = 0x86, 0x87, 0x8C, 0x9F, 0x98


def scram_link(site: Site, uid: str, *, method: str = "SCRAM-SHA-1", username: str = "") -> ScramLink:
    spec = TerminalSpec(uid=uid, username=username or f"u-{uid}", pin="", type="Adapter-II", scram=method)
    return ScramLink(spec, LinkOptions(port=site.port), on_error=lambda: pytest.fail("a protocol error"))


def auto_password(uid: str, seconds: int) -> str:
    digest = hmac.new(f"pin-{uid}".encode(), f"{uid}.{seconds}".encode(), hashlib.sha256).hexdigest()
    return f"{seconds}.{digest}"


class TestLogin:
    # paho shows the codes of 3.1.1 as those of MQTT 5: 4 as 0x86, 5 as 0x87, 3 as 0x88
    @pytest.mark.parametrize("protocol", [3, 4, 5])
    async def test_password(self, company, peer, protocol):
        await company.terminal("t1")
        await company.terminal("off", is_available=0)
        assert await peer("t1", protocol=protocol).connect() == 0
        assert await peer("t1", protocol=protocol).connect(password="wrong") == WRONG
        assert await peer("t1", protocol=protocol).connect(username="u-t2") == WRONG
        assert await peer("t2", protocol=protocol).connect(username="u-t1", password="pin-t1") == WRONG
        assert await peer("t1", protocol=protocol).connect(username=None, password=None) == NOT_AUTHORIZED
        assert await peer("off", protocol=protocol).connect() == NOT_AUTHORIZED

    @pytest.mark.parametrize("protocol", [4, 5])
    async def test_auto(self, company, peer, protocol):
        await company.terminal("t1", mode="auto")
        now_s = unix_s()
        assert await peer("t1", protocol=protocol).connect(password=auto_password("t1", now_s)) == 0
        assert await peer("t1", protocol=protocol).connect(password=auto_password("t1", now_s)) == WRONG
        assert await peer("t1", protocol=protocol).connect(password=auto_password("t1", now_s + 1)) == 0
        assert await peer("t1", protocol=protocol).connect(password="pin-t1") == WRONG

    @pytest.mark.parametrize("method", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
    async def test_scram(self, site, company, method):
        await company.terminal("t1", dixie=1)
        link = scram_link(site, "t1", method=method)
        assert await link.open("pin-t1")  # it has checked the server's signature and subscribed
        assert site.presence.presence("t1").online
        await link.close()
        with pytest.raises(LoginRefused) as refused:
            await scram_link(site, "t1", method=method).open("wrong")
        assert refused.value.reason == WRONG
        with pytest.raises(LoginRefused) as refused:
            await scram_link(site, "t1", method=method, username="other").open("pin-t1")
        assert refused.value.reason == WRONG

    @pytest.mark.parametrize("protocol", [4, 5])
    async def test_a_plain_password_where_scram_is_due(self, company, peer, protocol):
        await company.terminal("t1", dixie=1)
        assert await peer("t1", protocol=protocol).connect() == NOT_AUTHORIZED

    async def test_keep_alive_and_session_expiry_of_the_record(self, company, peer):
        await company.terminal("t1", keep_alive=7, session_expiry=99)
        one = peer("t1")
        assert await one.connect() == 0
        assert one.connack[2].ServerKeepAlive == 7
        assert one.connack[2].SessionExpiryInterval == 99

    async def test_activated_is_the_time_of_the_first_login(self, site, company, peer):
        before = await company.terminal("t1")
        assert before["activated"] is None
        one = peer("t1")
        assert await one.connect() == 0
        first_us = site.presence.presence("t1").since_us
        await one.close()
        again = peer("t1")
        assert await again.connect() == 0
        await site.activations.stop()
        record = await site.entities.terminals.item(company.actor, "t1")
        assert record["activated"] == first_us
        assert not again.is_down.is_set()


async def test_failed_logins_are_throttled(tmp_path):
    async with running_site(tmp_path, limits={"login_failures": 3}) as site, peers(site) as peer:
        company = await site.company()
        await company.terminal("t1")
        for _ in range(3):
            assert await peer("t1").connect(password="wrong") == WRONG
        assert await peer("t1").connect() == THROTTLED
        assert await peer("t1", protocol=4).connect() == ConnAckReasonCode.SERVER_UNAVAILABLE.value
        assert site.login.stats.throttled == 2


async def test_known_addresses_survive_a_restart(tmp_path):
    """Strangers elsewhere have tried the terminal's name: it gets in where it always logs in, and only there."""
    limits = {"login_failures": 3}
    async with running_site(tmp_path, limits=limits) as site, peers(site) as peer:
        company = await site.company()
        for uid in ("t1", "t2"):
            await company.terminal(uid)
        assert await peer("t1").connect() == 0
    async with running_site(tmp_path, limits=limits) as site, peers(site) as peer:
        await guess_from_everywhere(site, "t1", "t2")
        assert await peer("t2").connect() == THROTTLED
        assert await peer("t1").connect() == 0


async def test_another_pin_and_deletion_forget_where_a_terminal_comes_from(tmp_path):
    async with running_site(tmp_path, limits={"login_failures": 3}) as site, peers(site) as peer:
        company = await site.company()
        created = {uid: await company.terminal(uid) for uid in ("t1", "t2", "t3")}
        for uid in created:
            assert await peer(uid).connect() == 0
        await site.entities.terminals.update(company.actor, "t1", {"pin": "another"})
        await site.entities.terminals.update(company.actor, "t2", {"name": "another"})
        await site.entities.terminals.delete(company.actor, "t3")
        await guess_from_everywhere(site, "t1", "t2")
        assert await peer("t1").connect(password="another") == THROTTLED
        assert await peer("t2").connect() == 0
    places = (tmp_path / "terminal-places").read_text().split("\n")
    assert [f"{created[uid]['id']}" in places for uid in created] == [True, False, True]


async def guess_from_everywhere(site, *uids):
    """More wrong pins for each, from other addresses, than are let through at once."""
    for uid in uids:
        for last in range(40):
            request = ConnectRequest(client_id=uid, username=f"u-{uid}", password=b"wrong", address=f"10.9.8.{last}")
            await site.login.authenticate(request)


async def test_no_auto_password_serves_twice_even_after_a_restart(tmp_path):
    password = auto_password("t1", unix_s())
    async with running_site(tmp_path) as site, peers(site) as peer:
        await (await site.company()).terminal("t1", mode="auto")
        assert await peer("t1").connect(password=password) == 0
    async with running_site(tmp_path) as site, peers(site) as peer:
        assert await peer("t1").connect(password=password) == WRONG
        assert await peer("t1").connect(password=auto_password("t1", unix_s() + 1)) == 0


class TestPermissions:
    async def test_refused_publishes(self, site, company, peer):
        await company.terminal("t1", topic="pub:r,n")
        await company.terminal("t2")
        one, old = peer("t1"), peer("t2", protocol=4)
        assert await one.connect() == 0
        for topic in ("g/t1/a", "g/t2/r", "g/a", "g/t1", "p2p/t1", "x/t1", "m/1", "other"):
            assert await one.publish(topic, b'{"a":1}', 1) == NOT_AUTHORIZED
            assert await one.publish(topic, b'{"a":1}', 2) == PUBREL_UNKNOWN
            await one.publish(topic, b'{"a":1}', 0)
        assert await one.publish("g/t1/r", b'{"a":1}') == 0
        assert await old.connect() == 0
        assert await old.publish("g/t1/r", b'{"a":2}') == 0  # 3.1.1 has no way to refuse: dropped and counted
        assert await old.publish("g/r", b'{"a":3}') == 0
        assert [record.series for record in (await site.store.latest(await site.store.series(""), 99))] == [
            "g/t2/r",
            "g/t1/r",
        ]
        assert site.broker.stats.publishes_refused == 8 * 3 + 1

    @pytest.mark.parametrize(("protocol", "refused"), [(4, 0x80), (5, NOT_AUTHORIZED)])
    async def test_refused_subscriptions(self, company, peer, protocol, refused):
        await company.terminal("t1")
        await company.terminal("t2", topic="sub:g/#")
        await company.terminal("mute", access="pub")
        one, two, mute = (peer(uid, protocol=protocol) for uid in ("t1", "t2", "mute"))
        for each in (one, two, mute):
            assert await each.connect() == 0
        for topic_filter in ("#", "g/#", "g/t2/r", "p2p/t2", "p2p/#", "$SYS/#", "$share/x/g/#"):
            assert await one.subscribe(topic_filter) == refused
        assert await one.subscribe("p2p/t1") == 1
        assert await one.subscribe("g/t1/#") == 1
        assert await two.subscribe("g/#") == 1
        assert await mute.subscribe("p2p/mute") == refused

    async def test_subscribers_see_the_full_topic_of_a_short_one(self, company, peer):
        await company.terminal("t1")
        await company.terminal("t2", topic="sub:g/#")
        one, two = peer("t1"), peer("t2", protocol=4)
        assert (await one.connect(), await two.connect()) == (0, 0)
        assert await two.subscribe("g/+/r/#") == 1
        assert await one.publish("g/r/room/1", b'{"a":1}') == 0
        assert (await two.received(1))[0].topic == "g/t1/r/room/1"

    async def test_a_router_while_it_shares_an_object(self, site, company, peer):
        for uid in ("router", "t2", "t3"):
            await company.terminal(uid, is_route=int(uid == "router"))
        shared = await company.object("router", "t2")
        router = peer("router")
        assert await router.connect() == 0
        assert await router.publish("g/t2/r", b'{"a":1}') == 0
        assert await router.publish("g/t3/r", b'{"a":1}') == NOT_AUTHORIZED
        await site.entities.objects.update(company.actor, shared["id"], {"terminal_list": ["router", "t3"]})
        assert await router.publish("g/t2/r", b'{"a":1}') == NOT_AUTHORIZED
        assert await router.publish("g/t3/r", b'{"a":1}') == 0
        await site.entities.terminals.update(company.actor, "t3", {"is_available": 0})
        assert await router.publish("g/t3/r", b'{"a":1}') == NOT_AUTHORIZED
        assert not router.is_down.is_set()
        assert site.presence.presence("t2").last_telemetry_us
        assert not site.presence.presence("t2").online


class TestChangedRecords:
    @pytest.mark.parametrize("change", [{"pin": "another"}, {"is_available": 0}, {"topic": "pub:r"}, {"name": "new"}])
    async def test_a_change_ends_the_connection(self, site, company, peer, change):
        await company.terminal("t1")
        one = peer("t1")
        assert await one.connect() == 0
        await site.entities.terminals.update(company.actor, "t1", change)
        assert await one.gone() == ADMINISTRATIVE
        assert "administrative" in site.presence.presence("t1").disconnect_reason

    async def test_deletion_ends_the_connection_and_the_session(self, site, company, peer):
        await company.terminal("t1")
        one, old = peer("t1"), peer("t2", protocol=4)
        assert await one.connect(expiry_s=1000) == 0
        await company.terminal("t2")
        assert await old.connect() == 0
        await site.entities.terminals.delete(company.actor, "t1")
        await site.entities.terminals.delete(company.actor, "t2")
        assert await one.gone() == ADMINISTRATIVE
        assert await old.gone() is None
        assert "t1" not in site.broker.sessions
        assert site.presence.presence("t1") == site.presence.presence("never seen")
        assert await peer("t1").connect() == WRONG

    async def test_fewer_permissions_end_subscriptions_that_a_session_has_kept(self, site, company, peer):
        await company.terminal("t1", topic="pub:r;sub:g/#")
        await company.terminal("t2")
        one, two = peer("t1", clean=False), peer("t2")
        assert await one.connect(expiry_s=1000) == 0
        assert await one.subscribe("g/#") == 1
        await site.entities.terminals.update(company.actor, "t1", {"topic": "pub:r"})
        await one.gone()
        again = peer("t1", clean=False)
        assert await again.connect(expiry_s=1000) == 0
        assert await again.subscribe("p2p/t1") == 1
        assert await two.connect() == 0
        assert await two.publish("g/r", b'{"a":1}') == 0
        assert site.broker.client("t1").filters == {"p2p/t1"}
        assert again.messages == []

    @pytest.mark.parametrize(
        ("change", "stored"), [({"name": "new"}, 1), ({"is_available": 0}, 0), ({"topic": "pub:r"}, 0), ({}, 0)]
    )
    async def test_a_will_goes_by_the_record_as_it_is_then(self, site, company, peer, change, stored):
        await company.terminal("t1")
        await company.terminal("t2")
        one, two = peer("t1"), peer("t2")
        one.client.will_set("g/a", b'{"lost":true}', 1)
        assert await one.connect() == 0
        if change:
            await site.entities.terminals.update(company.actor, "t1", change)
        else:
            await site.entities.terminals.delete(company.actor, "t1")
        await one.gone()
        assert await two.connect() == 0
        assert await two.publish("g/r", b'{"a":1}') == 0  # behind the will, if there is one
        assert len(await site.grid("g/t1/a")) == stored


class TestPresence:
    async def test_the_life_of_a_connection(self, site, company, peer):
        await company.terminal("t1")
        assert not site.bus.presence("t1").online
        one = peer("t1", protocol=4)
        assert await one.connect() == 0
        first = site.bus.presence("t1")
        assert (first.online, first.protocol, first.address) == (True, "MQTT 3.1.1", "127.0.0.1")
        assert first.last_telemetry_us is None
        assert await one.publish("g/r", b'{"a":1}') == 0
        reported = site.bus.presence("t1")
        assert reported.messages == 1
        assert reported.last_telemetry_us >= reported.since_us
        await one.cut()
        await until(lambda: not site.bus.presence("t1").online)
        past = site.bus.presence("t1")
        assert past.disconnect_reason.startswith("connection lost")
        assert (past.since_us, past.messages, past.last_telemetry_us) == (None, 1, reported.last_telemetry_us)

    async def test_a_takeover_leaves_the_successor_online(self, site, company, peer):
        await company.terminal("t1")
        one, two = peer("t1"), peer("t1")
        assert await one.connect() == 0
        first_us = site.bus.presence("t1").since_us
        assert await two.connect() == 0
        assert await one.gone() == 0x8E
        assert site.bus.presence("t1").online
        assert site.bus.presence("t1").since_us > first_us

    async def test_a_silent_drop(self, site, company, peer):
        await company.terminal("t1", keep_alive=1)
        one = peer("t1", protocol=4)
        assert await one.connect() == 0
        one.client.loop_stop()  # it says nothing any more, its socket stays open
        await until(lambda: not site.bus.presence("t1").online)
        assert "keep-alive" in site.bus.presence("t1").disconnect_reason
