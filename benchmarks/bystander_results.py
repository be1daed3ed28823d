"""The statistics job and the balance of a company that is beside an attacked or attacking one: are there results?

Each second a terminal reports something that belongs to an hour of the day before, which was computed already and has
to be computed again: how long is it until its statistic has it? A balance has a window each two seconds, which is due
ten seconds after its end, as records may come late: how long is one overdue?
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from attacks.attack import GATEWAY
from attacks.company import AUTHOR, Company
from attacks.mqtt_peer import connected

UID = "b-late"
WINDOW_S, DUE_S = 2, 10
FIRST_S = 60.0  # for the first results, before anybody measures
PATIENCE_S = 30.0
LOOKS_S = 0.5


class Span:
    """How long the company works: so many seconds from the time when it begins, or until it is told to end."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.end_s = math.inf
        self._seconds = seconds

    @property
    def is_over(self) -> bool:
        """Whether that is over."""
        return time.monotonic() >= self.end_s

    def begin(self) -> None:
        """From now on."""
        self.end_s = min(self.end_s, time.monotonic() + self._seconds)

    def end(self) -> None:
        """Until now."""
        self.end_s = time.monotonic()


@dataclass
class Ages:
    """Seconds. ``statistics``: of each report until its result; ``balance``: at each look, of the oldest due."""

    statistics: list[float] = field(default_factory=list)
    balance: list[float] = field(default_factory=list)


class Results:
    """Makes the scripts and their first results; ``run`` measures."""

    def __init__(self, company: Company) -> None:
        self.ages = Ages()
        self._company = company
        self._reported = 0  # the number of the last report
        self._acknowledged_s: dict[int, float] = {}
        self._windows: list[int] = []  # those with reports and without a result, by when they are over
        company.terminal(UID)
        rows = [[code, "", "", "STA", "Cycled", f"{UID}.{code}", "", ""] for code in ("N", "X", "Y")]
        self._object = company.object(UID, rows=rows)
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        self._hour_s = int((hour - timedelta(days=1)).timestamp())
        company.report(UID, [self._late(), self._now()])
        made = {"object_list": [self._object], **AUTHOR}
        self._statistics = company.call("create_statistics", name="s", script=[["L", "last", "N"]], **made)["uid"]
        fields = {"target_code": "X", "input_codes": ["Y"], "window": WINDOW_S}
        self._balance = company.call("create_balance", name="b", **fields, **made)["uid"]
        company.call("start_statistics", uid=self._statistics)
        company.call("start_balance", uid=self._balance)

    async def run(self, http: aiohttp.ClientSession, span: Span) -> None:
        """Reports and looks until then, and until the last report is in its result."""
        self.ages = Ages()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._report(span), name="late reports")
            group.create_task(self._look(http, span), name="results")

    async def first(self) -> None:
        """Waits until there are results of both.

        Raises:
            TimeoutError: there are none for a minute.
        """
        async with aiohttp.ClientSession() as http, asyncio.timeout(FIRST_S):
            while not await self._has_first(http):  # noqa: ASYNC110 - the platform is another process
                await asyncio.sleep(LOOKS_S)

    async def _has_first(self, http: aiohttp.ClientSession) -> bool:
        return await self._statistic(http) >= self._reported and await self._window_s(http) > 0

    async def _report(self, span: Span) -> None:
        while not span.is_over:
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(PATIENCE_S), connected(self._company.platform.mqtt, UID) as peer:
                    while not span.is_over:
                        await peer.publish(*self._late())
                        self._acknowledged_s[self._reported] = time.monotonic()
                        await peer.publish(*self._now())
                        await asyncio.sleep(1.0)

    async def _look(self, http: aiohttp.ClientSession, span: Span) -> None:
        while not span.is_over or (self._acknowledged_s and time.monotonic() < span.end_s + PATIENCE_S):
            with suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    found, over_s = await self._statistic(http), await self._window_s(http)
                now_s = time.monotonic()
                for number in [each for each in self._acknowledged_s if each <= found]:
                    self.ages.statistics.append(now_s - self._acknowledged_s.pop(number))
                self._windows = [each for each in self._windows if each > over_s]
                if not span.is_over:
                    due_s = min([time.time(), *(each + DUE_S for each in self._windows)])
                    self.ages.balance.append(time.time() - due_s)
            await asyncio.sleep(LOOKS_S)
        self.ages.statistics += [time.monotonic() - since_s for since_s in self._acknowledged_s.values()]
        self._acknowledged_s.clear()

    def _late(self) -> tuple[str, bytes]:
        self._reported += 1
        point = {"N": self._reported, "Time": self._hour_s + self._reported % 3_600}
        return f"g/{UID}/r", json.dumps(point).encode()

    def _now(self) -> tuple[str, bytes]:
        self._windows.append((int(time.time()) // WINDOW_S + 1) * WINDOW_S)
        return f"g/{UID}/r", json.dumps({"X": self._reported % 7, "Y": self._reported % 5}).encode()

    async def _statistic(self, http: aiohttp.ClientSession) -> int:
        """The number of the last report that is in the hour's result, 0 without one."""
        asked = {"script_uid": self._statistics, "type": 1, "page_size": 1}
        found = await self._ask(http, "get_statistics_list", **asked)
        return int(float(found[0]["data"])) if found and found[0]["data"] else 0

    async def _window_s(self, http: aiohttp.ClientSession) -> float:
        """When the latest window with a result was over, seconds since 1970; 0 without one."""
        found = await self._ask(http, "get_last_balance_result")
        return datetime.fromisoformat(found[0]["block_id"]).timestamp() + WINDOW_S if found else 0.0

    async def _ask(self, http: aiohttp.ClientSession, action: str, **fields: Any) -> Any:
        url = f"{self._company.platform.url}{GATEWAY}"
        headers = {"Authorization": f"Bearer {self._company.tokens['viewer']}"}
        async with http.post(url, json={"action": action, **fields}, headers=headers) as answer:
            result = (await answer.json())["result"]
        return result["data"] if result else []
