"""A page that stays open for a shift: what comes live is shown, and takes no more memory later than it did before."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from browser import Tab, open_tab
from console_build import build_console
from playwright.sync_api import Browser

from migrated import PASSWORD
from running import Platform
from support import require_program

PUMP = "pump-1"
CODES = ("FLOW", "HEAD", "POWER")
REPORTS = 150  # of each part: those of five minutes, one each two seconds
PARTS = 3
MOST_MIB = 1.0
"""What the heap may grow by from the second part on: 150 points of three curves are 0.01 MiB."""
_FOLLOW_MS = 120_000


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    build_console()
    with Platform(tmp_path_factory.mktemp("lasting") / "data") as found:
        found.login()
        yield found


@pytest.fixture
def pump(platform: Platform) -> str:
    """The number of an object with three variables of a terminal."""
    platform.add_terminal(PUMP, platform.add_config())
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    rows = [[code, code, code, "STA", f"$AdapterID-1.{code}", ""] for code in CODES]
    mapping = platform.call("create_mapping", name="pump", script=rows, **by)["uid"]
    made = platform.call("create_object", name="Pump", mapping_id=mapping, terminal_list=[PUMP], **by)
    publish(platform, range(1))
    return str(made["id"])


def publish(platform: Platform, numbers: range) -> None:
    """A report of each number, all different: what does not change is stored once."""
    reports = [json.dumps({code: number + at / 10 for at, code in enumerate(CODES)}) for number in numbers]
    login = ["-i", PUMP, "-u", f"u-{PUMP}", "-P", f"pin-{PUMP}"]
    command = [require_program("mosquitto_pub"), "-p", str(platform.mqtt), *login, "-q", "1", "-t", f"g/{PUMP}/r", "-l"]
    subprocess.run(command, input="\n".join(reports).encode(), check=True, timeout=120)


def heap_mib(tab: Tab) -> float:
    """JavaScript's heap without what nobody holds any more."""
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used / 2**20


@pytest.mark.timeout(400)
def test_live_values_take_no_memory_for_good(platform: Platform, browser: Browser, pump: str) -> None:
    tab = open_tab(browser, platform.url)
    tab.open()
    tab.login("admin", PASSWORD)
    tab.open(f"#/objects/{pump}")
    tab.settle()
    heaps = []
    for part in range(PARTS):
        numbers = range(1 + part * REPORTS, 1 + (part + 1) * REPORTS)
        publish(platform, numbers)
        tab.page.locator(".legend b", has_text=str(numbers[-1])).first.wait_for(timeout=_FOLLOW_MS)
        heaps.append(heap_mib(tab))
    assert tab.complaints() == []
    tab.page.context.close()
    assert heaps[-1] - heaps[1] < MOST_MIB, heaps
