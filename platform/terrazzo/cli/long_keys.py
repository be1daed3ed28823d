"""Terminals whose RSA keys are longer than new ones may be: each of their payloads takes long to open."""

from __future__ import annotations

import sqlalchemy as sa
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from terrazzo.crypto.secrets import Secrets, SecretUnreadable
from terrazzo.database.database import Database
from terrazzo.metadata.definitions.registry import MAX_RSA_BITS, TERMINAL


async def find_long_keys(database: Database, secrets: Secrets) -> list[str]:
    """Their uids, each with the bits of its key."""
    table = TERMINAL.table
    query = sa.select(table.c.uid, table.c.rsa_privatekey).where(table.c.rsa_privatekey != "").order_by(table.c.id)
    found = []
    async with database.reading() as connection:
        async for row in await connection.stream(query):
            bits = _bits(secrets, row.rsa_privatekey)
            if bits > MAX_RSA_BITS:
                found.append(f"{row.uid} ({bits} bits)")
    return found


def _bits(secrets: Secrets, sealed: str) -> int:
    """Of a key; 0 for what is none: other checks tell of that."""
    try:
        text = secrets.unseal(sealed, f"{TERMINAL.name}.rsa_privatekey")
        key = load_pem_private_key(text.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except (SecretUnreadable, ValueError, TypeError, UnsupportedAlgorithm):
        return 0
    return key.key_size if isinstance(key, RSAPrivateKey) else 0
