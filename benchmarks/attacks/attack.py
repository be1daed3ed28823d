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
        config: lines for the platform's configuration file; ``{far_side}`` is a free port.
    """

    number: int
    name: str
    connections = 1
    per_second = 20.0
    config = ""

    def prepare(self, company: Company) -> Facts:
        """Makes what is needed, before anybody measures."""
        return {}

    @abstractmethod
    async def attack(self, attacker: Attacker, number: int) -> None:
        """One round of connection ``number``, from 0."""
