"""How much of what terminals report is stored: of one's company, for rates while somebody looks."""

from __future__ import annotations

import msgspec

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role


class IntakeQuery(msgspec.Struct):
    """No fields."""


class IntakeCounters(msgspec.Struct):
    """Reports of the company's terminals, and bytes of their payloads: stored since the start of the platform (two
    readings make a rate), and taken but not stored yet. Super users get those of all companies."""

    reports: int
    bytes: int
    waiting: int
    waiting_bytes: int


async def handle_get_intake(services: Services, actor: Actor, request: IntakeQuery) -> IntakeCounters:
    """The counters of the actor's company, of all for super users."""
    return IntakeCounters(*services.intake(None if actor.is_super else str(actor.company_id)))


OPERATIONS = (
    Operation(
        name="get_intake",
        summary="How many reports of terminals were stored, and how many wait for it",
        request=IntakeQuery,
        result=IntakeCounters,
        permission=Role.VIEWER,
        handler=handle_get_intake,
    ),
)
