"""Live traces of a terminal's packets, for administrators: some minutes, one terminal of a company at a time."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.audit.entry import AuditEntry
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import NotFound
from terrazzo.terminals.tracing import MOST_MINUTES, Trace, TracedPacket
from terrazzo.times import format_spaced


class TraceTarget(msgspec.Struct, kw_only=True):
    """Which terminal."""

    terminal_id: Key


class StartTrace(TraceTarget, kw_only=True):
    """Which terminal, and for how many minutes."""

    minutes: Annotated[int, Meta(ge=1, le=MOST_MINUTES, description="for which it is on")] = 5


class TraceState(msgspec.Struct):
    """Whether a terminal is traced: until when (null: not), who began, how many packets passed, and the last 500."""

    until: str | None
    by: str
    seen: int
    packets: list[TracedPacket]


async def handle_start_trace(services: Services, actor: Actor, request: StartTrace) -> TraceState:
    """Traces a terminal from now on; it is in the audit log before.

    Raises:
        Conflict: another terminal of the company is traced.
    """
    terminal = await _terminal(services, actor, request)
    services.traces.check(terminal)
    entry = AuditEntry(
        actor=actor,
        company_id=terminal.company_id,
        action="trace",
        entity="terminal",
        record_id=terminal.id,
        uid=terminal.uid,
        after={"minutes": request.minutes},
    )
    await services.audit.note(entry)
    return _state(services, services.traces.start(actor, terminal, request.minutes))


async def handle_stop_trace(services: Services, actor: Actor, request: TraceTarget) -> TraceState:
    """Ends the trace of a terminal, if there is one."""
    services.traces.stop(await _terminal(services, actor, request))
    return _state(services, None)


async def handle_get_trace(services: Services, actor: Actor, request: TraceTarget) -> TraceState:
    """The trace of a terminal that is on, with its last packets."""
    return _state(services, services.traces.of(await _terminal(services, actor, request)))


async def _terminal(services: Services, actor: Actor, request: TraceTarget) -> Terminal:
    terminal = services.registry.terminal(await find_terminal(services, actor, request.terminal_id))
    if terminal is None:
        raise NotFound("terminal_id", request.terminal_id)
    return terminal


def _state(services: Services, trace: Trace | None) -> TraceState:
    if trace is None:
        return TraceState(None, "", 0, [])
    return TraceState(format_spaced(trace.until_us, services.zone), trace.by, trace.seen, list(trace.packets))


OPERATIONS = (
    Operation(
        name="start_trace",
        summary="Traces a terminal's packets for some minutes: live frames of the kind trace, secrets masked",
        request=StartTrace,
        result=TraceState,
        permission=Role.ADMIN,
        handler=handle_start_trace,
    ),
    Operation(
        name="stop_trace",
        summary="Ends the trace of a terminal",
        request=TraceTarget,
        result=TraceState,
        permission=Role.ADMIN,
        handler=handle_stop_trace,
    ),
    Operation(
        name="get_trace",
        summary="The trace of a terminal that is on, with its last packets",
        request=TraceTarget,
        result=TraceState,
        permission=Role.ADMIN,
        handler=handle_get_trace,
    ),
)
