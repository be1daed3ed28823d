"""A headless Chromium, driven over its DevTools protocol: the page at /docs as users see it.

The console's tests have Playwright (``tests/console/browser.py``), which waits, locates and types. It can't share
a process with asyncio tests; those of /docs have the platform in their own process, and stay with this.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from support import require_chromium
from waiting import until


class Tab:
    """One page. ``requests`` are the addresses it asked for, ``errors`` what its scripts and policy complain of."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.requests: list[str] = []
        self.errors: list[str] = []

    async def listen(self) -> None:
        """Takes what the browser says until it hangs up."""
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            elif said["method"] == "Network.requestWillBeSent":
                self.requests.append(said["params"]["request"]["url"])
            elif said["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(said["params"]["exceptionDetails"]))
            elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.errors.append(said["params"]["entry"]["text"])

    async def command(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command; its result."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await self._answers[number]
        assert "error" not in answer, answer
        return dict(answer["result"])

    async def run(self, script: str) -> Any:
        """The value of a script in the page."""
        found = await self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def wait(self, script: str) -> None:
        """Until the script finds something true."""
        for _ in range(500):
            if await self.run(f"Boolean({script})"):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"never true: {script}")

    async def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Loads a page in a window of this size."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.command(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.command("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.command("Emulation.setDeviceMetricsOverride", **size)
        await self.command("Page.navigate", url=url)
        await self.wait("document.readyState === 'complete'")

    async def picture(self) -> bytes:
        """What is to be seen, as PNG."""
        return base64.b64decode((await self.command("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Tab]:
    """A browser with a profile of its own in ``folder``, and a page in it."""
    program = require_chromium()
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    flags.append("--disable-ipc-flooding-protection")  # or a page may visit 200 of its entries in ten seconds, no more
    profile = folder / "chromium"
    arguments = [*flags, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
    silence = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdout=silence, stderr=silence, start_new_session=True
    )
    try:
        port_file = profile / "DevToolsActivePort"
        await until(lambda: port_file.exists() and port_file.read_text().count("\n"), "chromium listens", timeout_s=30)
        port = port_file.read_text().split()[0]
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http, asyncio.TaskGroup() as group:
            async with http.get("/json/list") as response:
                page = next(each for each in await response.json() if each["type"] == "page")
            async with http.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                listening = group.create_task(tab.listen(), name="browser events")
                yield tab
                await socket.close()
            await listening
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)  # the program is a script, and the browser its child
        await process.wait()
