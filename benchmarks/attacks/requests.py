"""What a company's user asks for, in one request or over and over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attacks.attack import Attack, Facts

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company

MIB = 1 << 20


class CostlyTrials(Attack):
    """Trials of mappings, a viewer's right: long texts in many rows, and many rows with many payloads."""

    number = 14
    name = "check_mapping with long texts, and with many payloads"
    connections = 2

    async def attack(self, attacker: Attacker, number: int) -> None:
        if number:
            rows = [[f"V{n}", "", "", "STA", "a.p", ""] for n in range(200)]
            rows += [[f"F{n}", "", "", "FUNC", "", f"V{n} > V0 or V{n} == 'x'"] for n in range(200)]
            payloads = [{"terminal_id": "a", "payload": {"p": "x" * 450_000}}] * 2
        else:
            rows = [[f"V{n}", "", "", "STA", "a.p", ""] for n in range(500)]
            payloads = [{"terminal_id": "a", "payload": {"p": n}} for n in range(600)]
        await attacker.call("check_mapping", script=rows, terminal_list=["a"], payloads=payloads)


class WideFiles(Attack):
    """Files to import whose header row is thousands of names, or never ends."""

    number = 16
    name = "CSV headers of 40,000 names and of 32 MiB"
    connections = 2
    ends = True

    async def attack(self, attacker: Attacker, number: int) -> None:
        wide = b",".join(b"column%d" % name for name in range(40_000))
        header = wide if number else b"x," * (16 * MIB - 1)
        await attacker.post("/bulk/terminals?dry_run=1", header + b"\n")


class LongPatterns(Attack):
    """Patterns over columns of long texts, by clients that don't wait for the answer."""

    number = 19
    name = "like with 40 KB on JSON columns"
    connections = 16
    is_of_logins = True

    def prepare(self, company: Company) -> Facts:
        company.mapping([["V", "", "", "STA", "a.p", ""]], addition={"text": "a" * 800_000})
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        pattern = ("%a" * 20_000 + "b", "%a" * 120 + "b", "%" * 255)[number % 3]
        column = ("addition", "script", "name")[number // 3 % 3]
        where = [[column, "like", pattern]]
        async with asyncio.timeout(2.0):
            await attacker.call("get_mapping_list", where_and=where, page_size=1)


class ManyTrialImports(Attack):
    """Imports that change nothing and take everything: connections of the database, and memory."""

    number = 20
    name = "16 dry-run imports, and 32 MiB of empty rows"
    connections = 16
    is_of_logins = True
    ends = True

    async def attack(self, attacker: Attacker, number: int) -> None:
        if number < 4:
            body = b"[" + b"{}," * (10 * MIB)
        else:
            head = b"uid,name,type,config_id,mode,username,pin\n"
            body = head + b"".join(b"A%d,T,Other,a,pwd,u%d,p%d\n" % (n, n, n) for n in range(100_000))
        await attacker.post("/bulk/terminals?dry_run=1", body)
