"""What a company's administrator writes, and what the platform works off for it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from attacks.attack import Attack, Facts
from attacks.company import AUTHOR

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company

UID = "a-1"
PARTS = " + ".join(["x"] * 100)  # 199 parts


class ComparedTexts(Attack):
    """Expressions that compare the longest texts, of each message."""

    number = 17
    name = "800 expressions that compare long texts"

    def prepare(self, company: Company) -> Facts:
        company.terminal(UID)
        rows = [["A", "", "", "STA", f"{UID}.a", ""], ["B", "", "", "STA", f"{UID}.b", ""]]
        long = " or ".join(["A > B"] * 40)
        company.object(UID, rows=rows + [[f"F{n}", "", "", "FUNC", "", long] for n in range(300)])
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async with attacker.mqtt(UID) as peer:
            for size in (4_000, 400_000):
                for end in "xy":
                    await peer.publish(f"g/{UID}/r", json.dumps({"a": "x" * size + end, "b": "x" * size}).encode())
                    attacker.counts["reports"] += 1


class LongScripts(Attack):
    """Mappings and calculations of as many expressions as may be, written again and again."""

    number = 18
    name = "mappings and calculations of 250 rows with 199 parts, written over and over"
    connections = 2

    def prepare(self, company: Company) -> Facts:
        company.terminal(UID)
        rows = [["V", "", "", "STA", f"{UID}.p", ""]]
        mapping = company.mapping(rows)
        company.call("create_object", name="o", mapping_id=mapping, terminal_list=[UID])
        calculation = company.call("create_calculate", name="c", script=[["C", "1"]], **AUTHOR)["uid"]
        return {"mapping": mapping, "calculation": calculation}

    async def attack(self, attacker: Attacker, number: int) -> None:
        rounds = attacker.counts["rounds"]
        if number:
            rows = [[f"C{n}", PARTS.replace("x", f"V{n + rounds}")] for n in range(240)]
            uid, action = attacker.facts["calculation"], "update_calculate"
        else:
            rows = [[f"V{n}", "", "", "STA", f"{UID}.p{n + rounds}", PARTS] for n in range(240)]
            uid, action = attacker.facts["mapping"], "update_mapping"
        await attacker.call(action, role="admin", uid=uid, name="s", script=rows, **AUTHOR)


class QuadraticLists(Attack):
    """Conditions that together name 10,000 records, the most that are taken."""

    number = 24
    name = "10 lists of 1,000 uids"
    connections = 4

    def prepare(self, company: Company) -> Facts:
        for number in range(50):
            company.terminal(f"a{number}")
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        uids = ",".join(f"a{n}" for n in range(1_000))
        where = [["uid", uids] for _ in range(10)]
        await attacker.call("get_terminal_list", where_in=where, page_size=1_000)


class CostlyJobs(Attack):
    """Statistics, balances, a replay and exports of one company, all at once and begun again."""

    number = 26
    name = "statistics, balances, replays and exports all at once"
    connections = 6

    def prepare(self, company: Company) -> Facts:
        company.terminal(UID)
        rows = [[f"V{n}", "", "", "STA", "Cycled", f"{UID}.p{n}", "", ""] for n in range(100)]
        made = company.object(UID, rows=rows)
        company.report(UID, ((f"g/{UID}/r", self._report(n)) for n in range(5_000)))
        functions = ("avg", "max", "first", "count", "duration(V1==1)")
        script = [[f"S{n}", functions[n % 5], f"V{n % 100}"] for n in range(1_000)]
        statistics = company.call("create_statistics", name="s", object_list=[made], script=script, **AUTHOR)["uid"]
        company.call("start_statistics", uid=statistics)
        for number in range(10):
            fields = {"target_code": "V0", "input_codes": [f"V{n}" for n in range(1, 20)], "window": 60 + number}
            uid = company.call("create_balance", name="b", object_list=[made], **fields, **AUTHOR)["uid"]
            company.call("start_balance", uid=uid)
        return {"object": made, "statistics": statistics}

    async def attack(self, attacker: Attacker, number: int) -> None:
        made, script = attacker.facts["object"], attacker.facts["statistics"]
        ever = {"start_time": "2020-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
        if number == 0:
            await attacker.call("recompute_statistics", role="admin", script_uid=script, **ever)
        elif number == 1:
            await attacker.call("replay", role="admin", object_id=made, start_time="2020-01-01 00:00:00")
        elif number == 2:
            await attacker.call("get_last_statistics", script_uid=script, object_id=made, type=8)
        else:
            await attacker.download(f"/export/mosaic/{made}?format=csv")
        await asyncio.sleep(0.2)

    @staticmethod
    def _report(number: int) -> bytes:
        time_s = 1_700_000_000 + number * 60
        points = {f"p{n}": (number * (n + 1)) % 97 for n in range(100)}
        return json.dumps({**points, "Time": time_s}).encode()
