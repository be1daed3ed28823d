"""A terminal comes: it tried and is registered, and what the page says of how to connect is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Tab, tab_of_administrator
from console_build import build_console
from playwright.sync_api import Browser, expect

from certificate_authority import Authority
from client_certificates import ClientCa
from mqttjs import installed
from running import Platform, wait_for
from support import free_port, require_program

PIN = 'it\'s "$1" `x`'
"""What a shell, Python and JavaScript would each read otherwise, were it not quoted."""
TOOLS = ("mosquitto_pub", "Python (paho-mqtt)", "MQTT.js")
ENDED_S = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Platform]:
    build_console()
    server = authority.issue("localhost")
    tls = {
        "TERRAZZO_MQTT__TLS_PORT": str(free_port()),
        "TERRAZZO_MQTT__WEBSOCKET_TLS_PORT": str(free_port()),
        "TERRAZZO_MQTT__TLS_CERT": str(server.cert),
        "TERRAZZO_MQTT__TLS_KEY": str(server.key),
    }
    with Platform(tmp_path_factory.mktemp("connect") / "data", env=tls) as running:
        running.login().add_config()
        yield running


@pytest.fixture(scope="module")
def signer(platform: Platform) -> ClientCa:
    """The company's authority, which signs its terminals' certificates."""
    made = ClientCa("Hall 2")
    platform.call("create_terminal_authority", name="Hall 2", certificate=made.pem)
    return made


@pytest.fixture(scope="module")
def tab(platform: Platform, browser: Browser) -> Iterator[Tab]:
    with tab_of_administrator(browser, platform.url) as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    """Where whoever copies a command has what it names: the authority's certificate, the terminal's, MQTT.js."""
    made = tmp_path_factory.mktemp("copied")
    (made / "server-ca.pem").write_bytes(authority.ca.read_bytes())
    return made


def start(tool: str, text: str, folder: Path) -> subprocess.Popen[bytes]:
    """Runs what stands under the name of a tool, as it stands there."""
    if tool == "mosquitto_pub":
        require_program(tool)
        command = ["sh", "-c", text]
    elif tool == "MQTT.js":
        if not (folder / "node_modules").exists():
            (folder / "node_modules").symlink_to(installed() / "node_modules")
        (folder / "connect.mjs").write_text(text, encoding="utf-8")
        command = [require_program("node"), "connect.mjs"]
    else:
        pytest.importorskip("paho.mqtt.client")
        command = [sys.executable, "-c", text]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run(tool: str, text: str, folder: Path, tab: Tab) -> None:
    """Runs it until the page of the messages, which is open, has one more."""
    messages = tab.page.get_by_role("listitem").filter(has_text="Temperature")
    before = messages.count()
    with start(tool, text, folder) as running:
        try:
            if tool == "MQTT.js":  # stays connected, as a terminal does
                wait_for(lambda: tab.page.wait_for_timeout(20) or messages.count() > before or running.poll(), tool)
            else:
                running.wait(ENDED_S)
                assert running.returncode == 0
            expect(messages).to_have_count(before + 1)
        except AssertionError as wrong:
            running.kill()
            assert running.stdout is not None
            wrong.add_note(f"{text}\n{running.stdout.read().decode()}")
            raise
        finally:
            running.kill()


@pytest.mark.parametrize("way", ["plain", "over TLS", "with a certificate"])
def test_what_the_page_says_connects_the_terminal(
    tab: Tab, platform: Platform, signer: ClientCa, folder: Path, way: str
) -> None:
    uid, config = f"comes-{way.partition(' ')[2].replace(' ', '-')}", platform.call("get_terminal_config_list")[0]
    login = {"mode": "cert"} if way == "with a certificate" else {"username": 'of "its" $own', "pin": PIN}
    platform.add_terminal(uid, config["uid"], **login)
    if way == "with a certificate":
        signer.issue(uid).write(folder, uid)
    tab.open(f"#/terminals/{uid}?tab=connect")
    how = tab.page.get_by_role("region", name="How to connect this terminal")
    if way == "over TLS":
        how.get_by_role("checkbox", name="Over TLS").check()
    expect(how.get_by_text("server-ca.pem is who has signed")).to_have_count(0 if way == "plain" else 1)
    texts = {tool: how.get_by_role("region", name=tool).inner_text() for tool in TOOLS}
    assert all(("server-ca.pem" in text) == (way != "plain") for text in texts.values())
    tab.page.get_by_role("link", name="Messages", exact=True).click()
    expect(tab.page.get_by_text("Nothing was reported yet")).to_be_visible()
    for tool, text in texts.items():
        run(tool, text, folder, tab)
    expect(tab.page.get_by_role("listitem").filter(has_text=f"g/{uid}/r")).to_have_count(len(TOOLS))


def test_an_unknown_terminal_that_tried_is_registered_in_one_step_and_connects(
    tab: Tab, platform: Platform, folder: Path
) -> None:
    uid = "tried-1"
    command = [require_program("mosquitto_pub"), "-p", str(platform.mqtt), "-i", uid, "-t", "a", "-m", "{}"]
    assert subprocess.run([*command, "-u", "x", "-P", "x"], capture_output=True, timeout=60).returncode != 0
    tab.open("#/overview")
    tab.page.get_by_role("listitem").filter(has_text="unknown").get_by_role("link").first.click()
    row = tab.page.get_by_role("row").filter(has_text=uid)
    expect(row).to_contain_text("no terminal")
    row.get_by_role("button", name=re.compile("^Register")).click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Register").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="I have kept it").click()
    text = tab.page.get_by_role("region", name="mosquitto_pub").inner_text()
    tab.page.get_by_role("link", name="Messages", exact=True).click()
    expect(tab.page.get_by_text("Nothing was reported yet")).to_be_visible()
    run("mosquitto_pub", text, folder, tab)
    tab.open("#/terminals?unknown=1")
    tab.settle()
    expect(tab.page.get_by_text(uid)).to_have_count(0)
