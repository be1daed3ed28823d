"""What a terminal does with its reports."""

from __future__ import annotations

import base64
import itertools
import json
import os
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from attacks.attack import Attack, Facts

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company


TAKEN_NAME, TAKEN_POINTS = 1_000, 15_000  # within limits.point_name_chars and limits.points


def sealed(header: str, key: bytes = b"", text: bytes = b"junk") -> bytes:
    """A JWE in compact serialization, whatever its header says; it doesn't open."""
    parts = (header.encode(), key, bytes(12), text, bytes(16))
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)


class LoneSurrogates(Attack):
    """Headers of sealed reports that hold what can't be stored."""

    number = 1
    name = "a lone surrogate in a JWE header"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid, encryption=1)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        headers = (
            r'{"alg":"\ud800","enc":"A256GCM"}',
            r'{"alg":"dir","enc":"\udfff"}',
            r'{"alg":"dir","enc":"A256GCM","crit":["\ud800"]}',
        )
        async with attacker.mqtt(self.uid) as peer:
            await peer.publish_all((self.topic, sealed(header)) for header in headers)


class ToggledEvents(Attack):
    """Few bytes that change many variables, and turn as many events' conditions true."""

    number = 2
    name = "500 variables and 500 events toggled"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        variables = [[f"V{n}", "", "", "STA", f"{self.uid}.p{n}", ""] for n in range(500)]
        events = [[f"E{n}", "", "", "EVNT", "", "", f"V{n} > 0 and V0 > 0"] for n in range(500)]
        company.object(self.uid, rows=variables + events)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async with attacker.mqtt(self.uid) as peer:
            for value in itertools.islice(itertools.cycle((0, 1)), 20):
                await peer.publish(self.topic, json.dumps({f"p{n}": value for n in range(500)}).encode())
                attacker.counts["reports"] += 1


class NamesThatGrow(Attack):
    """A long name around many points, each of which is called by it when objects are made flat.

    Such a message is a reject; the longest that is none is stored, and read again by everything that reads.
    """

    number = 4
    name = "a name of 60 KB around 15,000 points, and the longest that is taken"
    connections = 2

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        made = company.object(self.uid, rows=[["V", "", "", "STA", f"{self.uid}.p", ""]])
        company.report(self.uid, [(self.topic, self._payload(TAKEN_NAME, TAKEN_POINTS))])
        return {"object": made}

    async def attack(self, attacker: Attacker, number: int) -> None:
        payload = self._payload(TAKEN_NAME, TAKEN_POINTS) if number else self._payload(60_000, 15_000)
        if not number:
            async with attacker.mqtt(self.uid) as peer:
                await peer.publish(self.topic, payload)
        rows = [["V", "", "", "STA", f"{self.uid}.p", ""]]
        payloads = [{"terminal_id": self.uid, "payload": json.loads(payload)}]
        await attacker.call("check_mapping", script=rows, terminal_list=[self.uid], payloads=payloads)
        if number:
            made, since = attacker.facts["object"], "2020-01-01 00:00:00"
            await attacker.call("replay", role="admin", object_id=made, start_time=since)
            for kind in ("csv", "jsonl"):
                await attacker.download(f"/export/grid/{self.uid}?format={kind}")

    @staticmethod
    def _payload(name: int, points: int) -> bytes:
        return json.dumps({"n" * name: dict.fromkeys(map(str, range(points)), 0)}).encode()


class LongText(Attack):
    """One long text that many variables take."""

    number = 5
    name = "200 rows over one point with a text of 500 KB"

    def prepare(self, company: Company) -> Facts:
        company.terminal(self.uid)
        company.object(self.uid, rows=[[f"V{n}", "", "", "STA", f"{self.uid}.p", ""] for n in range(200)])
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        async with attacker.mqtt(self.uid) as peer:
            for size in (500_000, 4_000):  # within what a variable takes, too
                texts = (os.urandom(size // 2).hex() for _ in range(3))
                await peer.publish_all((self.topic, json.dumps({"p": text}).encode()) for text in texts)


class JunkUnderLongKey(Attack):
    """Reports sealed under the longest key, which take long to find out that they don't open."""

    number = 6
    name = "junk sealed under the longest RSA key"
    connections = 4
    per_second = 100.0

    def prepare(self, company: Company) -> Facts:
        key = rsa.generate_private_key(public_exponent=65_537, key_size=4_096)  # longer ones are refused
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        for number in range(self.connections):
            company.terminal(self.uid_of(number), encryption=1, rsa_privatekey=pem)
        return {}

    async def attack(self, attacker: Attacker, number: int) -> None:
        uid = self.uid_of(number)
        junk = sealed('{"alg":"RSA-OAEP-256","enc":"A256GCM"}', b"\0" + os.urandom(511))
        async with attacker.mqtt(uid) as peer:
            attacker.counts["logins"] += 1
            for _ in range(10):
                await peer.publish_all((f"g/{uid}/r", junk) for _ in range(50))
                attacker.counts["reports"] += 50
