"""What an attack is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attacks.attacker import Attacker
    from attacks.company import Company

GATEWAY = "/apiproxy/api"
Facts = dict[str, Any]
"""What a preparation found or made, as JSON, for the process that attacks."""


class Attack(ABC):
    """One way to hurt others; its docstring says what it is.

    Attributes:
        number: that of the weakness, by which it is chosen.
        connections: how many do it side by side.
        per_second: how many rounds all of them together begin in a second at most.
        share: of what a preparation makes, from 0 to 1.
        is_of_logins: whether others' logins are measured beside it.
        ends: whether it goes on while the platform is told to end, which has to take it no longer for that.
        lasts: whether what it has made stays for the next start, which has to be no longer for that.
        config: lines for the platform's configuration file; ``{far_side}`` is a free port.
    """

    number: int
    name: str
    connections = 1
    per_second = 20.0
    share = 1.0
    is_of_logins = False
    ends = False
    lasts = False
    config = ""

    @property
    def uid(self) -> str:
        """The terminal that does it; no other attack has one of this uid."""
        return self.uid_of(0)

    @property
    def topic(self) -> str:
        """Where that one reports."""
        return f"g/{self.uid}/r"

    def uid_of(self, number: int) -> str:
        """Another one's."""
        return f"a{self.number}-{number}"

    def many(self, count: int) -> int:
        """So many of what a preparation makes, or the share of it that a short form has."""
        return max(1, int(count * self.share))

    def prepare(self, company: Company) -> Facts:
        """Makes what is needed, before anybody measures."""
        return {}

    @abstractmethod
    async def attack(self, attacker: Attacker, number: int) -> None:
        """One round of connection ``number``, from 0."""
