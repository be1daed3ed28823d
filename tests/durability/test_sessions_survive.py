"""Sessions, wills and commands over ``kill -9`` of the platform."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt

from running import Platform, wait_for

UID = "kept-1"


class Terminal:
    """A 3.1.1 terminal with a persistent session; ``on_connack`` gets the flags."""

    def __init__(self, platform: Platform, prepare: Callable[[mqtt.Client], None] = lambda _: None) -> None:
        self.session_present: list[bool] = []
        self.received: list[bytes] = []
        self.granted: list[Any] = []
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, UID, clean_session=False, reconnect_on_failure=False
        )
        self.client.username_pw_set(f"u-{UID}", f"pin-{UID}")
        self.client.on_connect = lambda _c, _d, flags, _r, _p: self.session_present.append(flags.session_present)
        self.client.on_message = lambda _c, _d, message: self.received.append(message.payload)
        self.client.on_subscribe = lambda _c, _d, _m, reasons, _p: self.granted.append(reasons)
        prepare(self.client)
        self.client.connect("127.0.0.1", platform.mqtt)
        self.client.loop_start()
        wait_for(lambda: self.session_present, "CONNACK")

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def started(tmp_path: Path) -> Platform:
    platform = Platform(tmp_path / "data").login()
    platform.add_terminal(UID, platform.add_config())
    return platform


def test_a_session_is_there_after_a_kill_and_commands_that_waited_arrive_once(tmp_path: Path) -> None:
    platform = started(tmp_path)
    try:
        terminal = Terminal(platform)
        terminal.client.subscribe(f"p2p/{UID}", qos=1)
        wait_for(lambda: terminal.granted, "SUBACK")
        terminal.close()
        platform.call("publish_terminal_command", terminal_id=UID, command="Valve", value="1")
        platform.kill()
        platform = platform.again().login()
        (command,) = platform.call("get_command_list", terminal_id=UID)["data"]
        assert command["state"] == "queued", "never delivered while offline"
        terminal = Terminal(platform)
        assert terminal.session_present == [True]
        wait_for(lambda: terminal.received, "the command, without subscribing again")

        def state() -> str:
            return str(platform.call("get_command_list", terminal_id=UID)["data"][0]["state"])

        wait_for(lambda: state() == "delivered", "delivered")
        terminal.close()
        assert terminal.received == [b'{"Act":"Control","Valve":1}']
    finally:
        platform.kill()


def test_the_will_of_a_terminal_that_the_kill_cut_off_is_stored(tmp_path: Path) -> None:
    platform = started(tmp_path)
    try:
        terminal = Terminal(platform, lambda client: client.will_set(f"g/{UID}/a", b'{"lost": 1}', qos=1))
        terminal.client.publish(f"g/{UID}/r", b'{"n": 1}', qos=1).wait_for_publish(10)
        platform.kill()
        terminal.client.loop_stop()
        platform = platform.again().login()
        wait_for(lambda: platform.call("get_last_grid", terminal_id=UID, topic=["a"])["data"], "the will is stored")
        (record,) = platform.call("get_last_grid", terminal_id=UID, topic=["a"])["data"]
        assert record["payload"] == {"lost": 1}
    finally:
        platform.kill()
