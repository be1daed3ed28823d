"""What the platform works off for a company: all kinds of it at once."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from attacks.attack import Attack, Facts
from attacks.company import AUTHOR

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company

CAMPAIGN_TERMINALS = 1_000  # as many as a list has


class CostlyJobs(Attack):
    """Statistics, balances, a replay, exports and campaigns of one company, all at once and begun again."""

    number = 26
    name = "statistics, balances, replays, exports and campaigns all at once"
    connections = 8

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        rows = [[f"V{n}", "", "", "STA", "Cycled", f"{self.uid}.p{n}", "", ""] for n in range(100)]
        made = company.object(self.uid, rows=rows)
        company.report(self.uid, ((self.topic, self._report(n)) for n in range(self.many(5_000))))
        functions = ("avg", "max", "first", "count", "duration(V1==1)")
        script = [[f"S{n}", functions[n % 5], f"V{n % 100}"] for n in range(1_000)]
        statistics = company.call("create_statistics", name="s", object_list=[made], script=script, **AUTHOR)["uid"]
        company.call("start_statistics", uid=statistics)
        for number in range(10):
            fields = {"target_code": "V0", "input_codes": [f"V{n}" for n in range(1, 20)], "window": 60 + number}
            uid = company.call("create_balance", name="b", object_list=[made], **fields, **AUTHOR)["uid"]
            company.call("start_balance", uid=uid)
        firmware = company.firmware()
        commanded = company.terminals(self.many(CAMPAIGN_TERMINALS), config=firmware)
        return {"object": made, "statistics": statistics, "firmware": firmware, "terminals": commanded}

    async def attack(self, attacker: Attacker, number: int) -> None:
        made, script = attacker.facts["object"], attacker.facts["statistics"]
        ever = {"start_time": "2020-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
        if number == 0:
            await attacker.call("recompute_statistics", role="admin", script_uid=script, **ever)
        elif number == 1:
            await attacker.call("replay", role="admin", object_id=made, start_time="2020-01-01 00:00:00")
        elif number == 2:
            await attacker.call("get_last_statistics", script_uid=script, object_id=made, type=8)
        elif number in (3, 4):
            await self._campaign(attacker)
        else:
            await attacker.download(f"/export/mosaic/{made}?format=csv")
        await asyncio.sleep(0.2)

    async def _campaign(self, attacker: Attacker) -> None:
        """Commands all terminals, none of which is there, in one wave; and takes all of it back."""
        asked = {"config_id": attacker.facts["firmware"], "unit": "LUA", "terminal_list": attacker.facts["terminals"]}
        made = await attacker.call("create_campaign", role="admin", name="c", waves=[100], **asked, **AUTHOR)
        if made:
            await attacker.call("start_campaign", role="admin", uid=made["uid"])
            await asyncio.sleep(1.0)
            await attacker.call("abort_campaign", role="admin", uid=made["uid"])

    @staticmethod
    def _report(number: int) -> bytes:
        time_s = 1_700_000_000 + number * 60
        points = {f"p{n}": (number * (n + 1)) % 97 for n in range(100)}
        return json.dumps({**points, "Time": time_s}).encode()
