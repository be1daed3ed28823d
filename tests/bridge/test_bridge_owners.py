"""What a bridge brings in belongs to the company that the configuration names; without one, to nobody."""

from __future__ import annotations

import json
from pathlib import Path

from bridge_rig import Peer, bridge_toml, metric, start_platform, stored, terminal, wait_connected

from running import Mosquitto, Platform, wait_for

IN = [{"filter": "#"}]
WIDE = "pub:r,a,v,p,i,n;sub:#,p2p/#"


def other_company(platform: Platform) -> str:
    """A second company with the terminal t3, which may hear everything; its uid."""
    company = platform.call("create_company", name="other", created_by=1, last_modified_by=1, is_available=1)["uid"]
    config = platform.call(
        "create_terminal_config", name="c2", created_by=1, last_modified_by=1, is_available=1,
        permission_company_id=company,
    )["uid"]  # fmt: skip
    platform.add_terminal("t3", config, topic=WIDE, permission_company_id=company)
    return str(company)


def test_what_a_companys_bridge_brings_is_heard_by_the_company_alone(tmp_path: Path, remote: Mosquitto) -> None:
    toml = bridge_toml(f"mqtt://127.0.0.1:{remote.port}", in_=IN, company_id=1)
    with start_platform(tmp_path, toml) as platform, Peer(remote.port) as there:
        other_company(platform)
        wait_connected(platform)
        with (
            terminal(platform, "t2").subscribe("#", "p2p/#") as own,
            terminal(platform, "t3").subscribe("#", "p2p/#") as other,
        ):
            there.publish("orders/new", "x", retain=True)
            there.publish("p2p/t1", "command")
            there.publish("p2p/t3", "not its own company's")
            there.publish("g/t3/r", '{"n": 1}')
            there.publish("g/t1/r", '{"n": 2}')
            own.wait_for(3)
            assert sorted({each.topic for each in own.messages}) == ["g/t1/r", "orders/new", "p2p/t1"]
            wait_for(lambda: metric(platform, "refused_here") == 2, "the other company's are refused")
            assert other.messages == []
        with terminal(platform, "t3").subscribe("orders/#") as later:
            later.client.publish("g/t3/r", '{"end": 1}', 1).wait_for_publish(10)
            assert later.messages == []
        assert stored(platform, "t1") == [{"n": 2}]


def test_what_a_bridge_without_a_company_brings_is_nobodys(tmp_path: Path, remote: Mosquitto) -> None:
    """Reports are their terminals' companies' all the same, and other bridges get everything."""
    toml = bridge_toml(f"mqtt://127.0.0.1:{remote.port}", in_=[{"filter": "in/#"}, {"filter": "g/#"}])
    toml += bridge_toml(
        f"mqtt://127.0.0.1:{remote.port}", name="out", out=[{"filter": "#", "remote_prefix": "copy/"}]
    )  # fmt: skip
    with start_platform(tmp_path, toml) as platform, Peer(remote.port).subscribe("copy/#") as there:
        other_company(platform)
        wait_connected(platform)
        with (
            terminal(platform, "t2").subscribe("#", "p2p/#") as own,
            terminal(platform, "t3").subscribe("#", "p2p/#") as other,
        ):
            there.publish("in/orders/new", "x")
            there.publish("g/t1/r", '{"n": 2}')
            there.wait_for(2)
            own.wait_for(1)
            assert [each.topic for each in own.messages] == ["g/t1/r"]
            assert other.messages == []
        assert sorted({each.topic for each in there.messages}) == ["copy/g/t1/r", "copy/in/orders/new"]


def test_a_companys_bridge_takes_out_what_is_the_companys(tmp_path: Path, remote: Mosquitto) -> None:
    toml = bridge_toml(f"mqtt://127.0.0.1:{remote.port}", out=[{"filter": "#"}], company_id=1)
    with start_platform(tmp_path, toml) as platform, Peer(remote.port).subscribe("#") as there:
        other_company(platform)
        wait_connected(platform)
        with terminal(platform, "t3") as other, terminal(platform, "t1") as own:
            other.client.publish("g/t3/r", '{"n": 1}', 1).wait_for_publish(10)
            own.client.publish("g/t1/r", '{"n": 2}', 1).wait_for_publish(10)
            there.wait_for(1)
        assert [(each.topic, json.loads(each.payload)) for each in there.messages] == [("g/t1/r", {"n": 2})]


def test_the_bridge_of_a_closed_company_stops_until_it_is_open_again(tmp_path: Path, remote: Mosquitto) -> None:
    rules = {"in_": [{"filter": "orders/#"}], "out": [{"filter": "g/#"}]}
    toml = bridge_toml(f"mqtt://127.0.0.1:{remote.port}", **rules, company_id=2)
    with start_platform(tmp_path, toml) as platform:
        company = other_company(platform)
        wait_connected(platform)
        platform.call("update_company", **{**platform.call("get_company_item", uid=company), "is_available": 0})
        wait_for(lambda: metric(platform, "connected") == 0, "the link is cut")
        platform.stop()
        with platform.again().login() as second:
            assert metric(second, "connected") == 0
            second.call("update_company", **{**second.call("get_company_item", uid=company), "is_available": 1})
            wait_connected(second)
