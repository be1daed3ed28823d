"""Failed logins of users and terminals as administrators see them, and lifting what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from terrazzo.access.tokens import Tokens
from terrazzo.domain.actor import Actor
from terrazzo.domain.registry import Registry
from terrazzo.logins.limiter import LoginFailures, LoginLimiter
from terrazzo.times import now_us


class FailedLogins(NamedTuple):
    """The failures of a user or terminal at an address, or (``failures.share`` empty) from everywhere."""

    kind: str  # user | terminal
    uid: str
    company_id: int
    failures: LoginFailures


class Lockouts:
    """Who has failed to log in lately, and who is kept waiting for it.

    Args:
        of_users: the limits of users' logins.
        of_terminals: those of terminals'.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        tokens: Tokens,
        registry: Registry,
        *,
        of_users: LoginLimiter,
        of_terminals: LoginLimiter,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._tokens = tokens
        self._registry = registry
        self._of_users = of_users
        self._of_terminals = of_terminals
        self._clock = clock

    def failures(self, actor: Actor) -> list[FailedLogins]:
        """Those of the actor's company (of all for a super user), the latest first."""
        found = [each for each in self._all() if actor.is_super or each.company_id == actor.company_id]
        return sorted(found, key=lambda each: each.failures.last_s, reverse=True)

    def unlock_user(self, user_id: int) -> None:
        """Forgets a user's failures at every address."""
        self._of_users.unlock(user_id)

    def unlock_terminal(self, terminal_id: int) -> None:
        """Forgets a terminal's failures at every address."""
        self._of_terminals.unlock(terminal_id)

    def terminal_places(self, terminal_id: int) -> list[str]:
        """The addresses (of IPv6 the /64) that a terminal has logged in from."""
        return self._of_terminals.places.shares_of(terminal_id)

    def _all(self) -> Iterator[FailedLogins]:
        now_s = self._clock() / 1_000_000
        for failures in self._of_users.failures(now_s):
            account = self._tokens.actor(failures.record_id)
            if account is not None:
                yield FailedLogins("user", account.username, account.company_id, failures)
        for failures in self._of_terminals.failures(now_s):
            terminal = self._registry.terminal_by_id(failures.record_id)
            if terminal is not None:
                yield FailedLogins("terminal", terminal.uid, terminal.company_id, failures)
