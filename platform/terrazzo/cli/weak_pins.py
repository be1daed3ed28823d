"""Terminals whose pins are easily guessed; the pins themselves are told to nobody."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from terrazzo.crypto.secrets import Secrets, SecretUnreadable
from terrazzo.database.database import Database
from terrazzo.metadata.definitions.registry import TERMINAL

SHORT_PIN = 8  # characters
MOST_NAMED = 10
_AT_ONCE = 5_000  # rows that one statement reads


@dataclass(slots=True)
class WeakPins:
    """Uids of terminals, by what is wrong with their pins."""

    short: list[str] = field(default_factory=list)
    own_name: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)


async def find_weak_pins(database: Database, secrets: Secrets, *, pin_chars: int) -> WeakPins:
    """Opens all pins, one after the other. In memory stay uids, and a keyed digest of each pin.

    Args:
        pin_chars: a pin of fewer characters is short.
    """
    weak, salt = WeakPins(), os.urandom(16)
    having: defaultdict[bytes, list[str]] = defaultdict(list)
    table, last = TERMINAL.table, 0
    while True:
        columns = (table.c.id, table.c.uid, table.c.username, table.c.pin)
        query = sa.select(*columns).where(table.c.id > last).order_by(table.c.id).limit(_AT_ONCE)
        async with database.reading() as connection:
            found = (await connection.execute(query)).all()
        for row in found:
            try:
                pin = secrets.unseal(row.pin, f"{TERMINAL.name}.pin")
            except SecretUnreadable:
                continue  # the check of secrets tells of that
            if len(pin) < pin_chars:
                weak.short.append(row.uid)
            if pin.casefold() in (row.uid.casefold(), row.username.casefold()):
                weak.own_name.append(row.uid)
            having[hashlib.blake2b(pin.encode(), key=salt, digest_size=16).digest()].append(row.uid)
        if len(found) < _AT_ONCE:
            break
        last = found[-1].id
    weak.shared = [uid for uids in having.values() if len(uids) > 1 for uid in uids]
    return weak


def names(uids: Sequence[str]) -> str:
    """The first few uids, and how many more there are."""
    more = f" and {len(uids) - MOST_NAMED} more" if len(uids) > MOST_NAMED else ""
    return ", ".join(uids[:MOST_NAMED]) + more
