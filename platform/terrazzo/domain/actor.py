"""The user on whose behalf an operation runs."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Role(IntEnum):
    """Roles of users, in rising order: each may do what the ones before it may."""

    VIEWER = 1  # reads
    OPERATOR = 2  # also sends commands, closes labels, writes service and offline records
    ADMIN = 3  # also manages, and sees terminal secrets


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The user on whose behalf an operation runs, and the address that the request came from."""

    user_id: int
    username: str
    company_id: int
    role: Role
    is_super: bool = False
    address: str = ""  # of whoever asks; empty: the platform itself
    api_key: str = ""  # the visible beginning of the API key that was shown; empty: a token
    batch: str = ""  # what is done at once has the same in the audit log; empty: by itself

    def may(self, role: Role) -> bool:
        """Whether the user's role reaches ``role``."""
        return self.is_super or self.role >= role


SYSTEM = Actor(user_id=0, username="system", company_id=1, role=Role.ADMIN, is_super=True)
"""The platform itself, where it changes records on nobody's behalf."""
