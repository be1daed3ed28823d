"""A second factor: codes of an authenticator app (TOTP, RFC 6238), each good once, and recovery codes.

The secret is sealed at rest. A code's step is noted in the statement that accepts it, so that of two logins with the
same code one is refused, in whichever process.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.access import SECOND_FACTOR
from terrazzo.errors import NotAuthenticated, Throttled
from terrazzo.logins.code_limiter import CodeLimiter
from terrazzo.reasons import say
from terrazzo.times import now_us

ISSUER = "Terrazzo"  # what authenticator apps show
RECOVERY_CODES = 10
STEP_S = 30
DRIFT = 1  # steps that an app's clock may be off

_DIGITS = 6
_SECRET_BYTES = 20
_RECOVERY_BYTES = 10
_PLACE, _PENDING_PLACE = "second_factor.secret", "second_factor.pending"


class WrongCode(NotAuthenticated):
    """A code that is no good; ``reason`` is what the audit log says of it."""

    def __init__(self, info: str, reason: str) -> None:
        super().__init__(info)
        self.reason = reason


class Enrolment(NamedTuple):
    """A secret that is not confirmed yet: in base32, and as the address that apps take as a QR code."""

    secret: str
    uri: str


class SecondFactors:
    """The second factors of all users, in the table ``second_factor``.

    Args:
        clock: UTC microseconds.
    """

    def __init__(self, database: Database, keys: Secrets, *, clock: Callable[[], int] = now_us) -> None:
        self._database = database
        self._keys = keys
        self._clock = clock
        self.limiter = CodeLimiter()

    async def enrol(self, user_id: int, username: str) -> Enrolment:
        """Makes a secret, which is good for nothing until ``confirm``; an earlier one that wasn't confirmed goes."""
        secret = secrets.token_bytes(_SECRET_BYTES)
        text = base64.b32encode(secret).decode()
        columns, sealed = SECOND_FACTOR.c, self._keys.seal(text, _PENDING_PLACE)
        async with self._database.writing() as connection:
            mine = SECOND_FACTOR.update().where(columns.user_id == user_id).values(pending=sealed)
            if not (await connection.execute(mine)).rowcount:
                values = {"user_id": user_id, "pending": sealed, "secret": "", "step": 0, "recovery": "[]"}
                await connection.execute(SECOND_FACTOR.insert().values(**values))
        return Enrolment(text, _totp(secret).get_provisioning_uri(username, ISSUER))

    async def confirm(self, user_id: int, code: str) -> list[str]:
        """Puts the secret in force that was made last, if the code is one of it; the recovery codes.

        Raises:
            WrongCode: it is not.
            Throttled: too many wrong ones.
        """
        self._begin(user_id)
        found = await self._find(user_id)
        if found is None or not found.pending:
            raise WrongCode(say("nothing_to_confirm"), "nothing enrolled")
        text = self._keys.unseal(found.pending, _PENDING_PLACE)
        step = self._step_of(text, code)
        if step is None:
            raise WrongCode(say("second_factor_wrong"), "wrong code")
        recovery, hashes = _new_recovery()
        values = {"secret": self._keys.seal(text, _PLACE), "pending": "", "step": step, "recovery": hashes}
        await self._change(found, SECOND_FACTOR.c.pending == found.pending, values)
        self.limiter.forget(user_id)
        return recovery

    async def check(self, user_id: int, code: str) -> None:
        """Accepts a code of the app, or a recovery code; neither is good again.

        Raises:
            WrongCode: it is wrong, or was used already.
            Throttled: too many wrong ones.
        """
        self._begin(user_id)
        found = await self._find(user_id)
        if found is None or not found.secret:
            raise WrongCode(say("second_factor_wrong"), "wrong code")
        text = "".join(code.split()).replace("-", "")
        if text.isascii() and text.isdigit():
            await self._check_app(found, text)
        else:
            await self._check_recovery(found, text)
        self.limiter.forget(user_id)

    async def renew_recovery(self, user_id: int) -> list[str]:
        """Makes new recovery codes in place of those there are."""
        recovery, hashes = _new_recovery()
        async with self._database.writing() as connection:
            mine = SECOND_FACTOR.update().where(SECOND_FACTOR.c.user_id == user_id)
            await connection.execute(mine.values(recovery=hashes))
        return recovery

    async def _check_app(self, found: sa.Row[tuple[object, ...]], code: str) -> None:
        step = self._step_of(self._keys.unseal(found.secret, _PLACE), code)
        if step is None:
            raise WrongCode(say("second_factor_wrong"), "wrong code")
        if step <= found.step:
            raise WrongCode(say("second_factor_code_used"), "code used before")
        await self._change(found, SECOND_FACTOR.c.step < step, {"step": step})

    async def _check_recovery(self, found: sa.Row[tuple[object, ...]], code: str) -> None:
        hashes, mine = msgspec.json.decode(found.recovery, type=list[str]), _hash_of(code)
        if not any(hmac.compare_digest(each, mine) for each in hashes):
            raise WrongCode(say("second_factor_code_wrong"), "wrong code")
        rest = msgspec.json.encode([each for each in hashes if each != mine]).decode()
        await self._change(found, SECOND_FACTOR.c.recovery == found.recovery, {"recovery": rest})

    async def _change(
        self, found: sa.Row[tuple[object, ...]], unchanged: sa.ColumnElement[bool], values: dict[str, object]
    ) -> None:
        """Writes where the row is as it was read; otherwise somebody else was faster with the same code."""
        statement = SECOND_FACTOR.update().where(SECOND_FACTOR.c.id == found.id, unchanged).values(**values)
        async with self._database.writing() as connection:
            if not (await connection.execute(statement)).rowcount:
                raise WrongCode(say("second_factor_code_used"), "code used before")

    async def _find(self, user_id: int) -> sa.Row[tuple[object, ...]] | None:
        async with self._database.reading() as connection:
            query = sa.select(SECOND_FACTOR).where(SECOND_FACTOR.c.user_id == user_id)
            return (await connection.execute(query)).first()

    def _step_of(self, secret: str, code: str) -> int | None:
        """The newest step whose code this is; None where it is none of these minutes'."""
        totp, now = _totp(base64.b32decode(secret)), self._clock() // 1_000_000 // STEP_S
        steps: Sequence[int] = range(now + DRIFT, now - DRIFT - 1, -1)
        given = code.encode("utf-8", "surrogatepass")
        matching = [step for step in steps if hmac.compare_digest(totp.generate(step * STEP_S), given)]
        return matching[0] if matching else None

    def _begin(self, user_id: int) -> None:
        wait_s = self.limiter.begin(user_id, self._clock() / 1_000_000)
        if wait_s:
            raise Throttled(say("too_many_wrong_codes", wait_s=math.ceil(wait_s)), wait_s)


def _totp(secret: bytes) -> TOTP:
    return TOTP(secret, _DIGITS, SHA1(), STEP_S)  # nosec B303 - what all apps have; an HMAC needs no better hash


def _new_recovery() -> tuple[list[str], str]:
    """Recovery codes, and their hashes as stored."""
    codes = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    hashes = msgspec.json.encode([_hash_of(code) for code in codes]).decode()
    return ["-".join(code[start : start + 4] for start in range(0, len(code), 4)) for code in codes], hashes


def _hash_of(code: str) -> str:
    return hashlib.sha256(code.lower().encode("utf-8", "surrogatepass")).hexdigest()
