"""What a company's administrator writes, and what the platform works off for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attacks.attack import Attack, Facts
from attacks.company import AUTHOR, Row

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company

PARTS = " + ".join(["x"] * 100)  # 199 parts


class ComparedTexts(Attack):
    """Expressions that compare the longest texts, of each message."""

    number = 17
    name = "800 expressions that compare long texts"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        rows = [["A", "", "", "STA", f"{self.uid}.a", ""], ["B", "", "", "STA", f"{self.uid}.b", ""]]
        long = " or ".join(["A > B"] * 40)
        company.object(self.uid, rows=rows + [[f"F{n}", "", "", "FUNC", "", long] for n in range(300)])
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async with attacker.mqtt(self.uid) as peer:
            for size in (4_000, 400_000):
                for end in "xy":
                    await peer.publish(self.topic, json.dumps({"a": "x" * size + end, "b": "x" * size}).encode())
                    attacker.counts["reports"] += 1


class LongScripts(Attack):
    """Mappings and calculations of as many expressions as may be, written again and again."""

    number = 18
    name = "mappings and calculations of 250 rows with 199 parts, written over and over"
    connections = 2
    lasts = True

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        rows = [["V", "", "", "STA", f"{self.uid}.p", ""]]
        mapping = company.mapping(rows)
        company.call("create_object", name="o", mapping_id=mapping, terminal_list=[self.uid])
        for _ in range(self.many(4)):  # which the next start finds
            company.object(self.uid, rows=self._rows(0))
        calculation = company.call("create_calculate", name="c", script=[["C", "1"]], **AUTHOR)["uid"]
        return {"mapping": mapping, "calculation": calculation}

    async def attack(self, attacker: Attacker, number: int) -> None:
        rounds = attacker.counts["rounds"]
        if number:
            rows = [[f"C{n}", PARTS.replace("x", f"V{n + rounds}")] for n in range(240)]
            uid, action = attacker.facts["calculation"], "update_calculate"
        else:
            rows = self._rows(rounds)
            uid, action = attacker.facts["mapping"], "update_mapping"
        await attacker.call(action, role="admin", uid=uid, name="s", script=rows, **AUTHOR)

    def _rows(self, first: int) -> list[Row]:
        return [[f"V{n}", "", "", "STA", f"{self.uid}.p{n + first}", PARTS] for n in range(240)]


class QuadraticLists(Attack):
    """Conditions that name as many records as a request has room for, and as many as are taken."""

    number = 24
    name = "199 lists of 1,000 uids, and ten"
    connections = 4

    def prepare(self, company: Company) -> Facts:
        for number in range(self.many(50)):
            company.terminal(f"a{number}")
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        uids = ",".join(f"a{n}" for n in range(1_000))
        where = [["uid", uids]] * (199 if number % 2 else 10)
        await attacker.call("get_terminal_list", where_in=where, page_size=1_000)
