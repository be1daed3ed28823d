"""How the machine is: parts, tasks, disk, backup, bridges; for super users."""

from __future__ import annotations

import time

import msgspec

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.readiness import check_readiness
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.attention import CompanyDisk, of_disk
from terrazzo.attention.attention import MOST_COMPANIES
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import NotPermitted
from terrazzo.memory_shares import NO_CEILING
from terrazzo.ports.bridge import Bridge
from terrazzo.reasons import Reason, say
from terrazzo.times import format_spaced, now_us


class PlatformStatusQuery(msgspec.Struct):
    """No fields."""


class TaskRecord(msgspec.Struct):
    """A long-lived task. ``last_error``: the class of its last error, empty where it never failed."""

    name: str
    state: str
    restarts: int
    failures: int
    last_error: str


class DiskRecord(msgspec.Struct):
    """The disk of the data folder. ``days_left``: null where it isn't known, or nothing grows. ``companies``: those
    that are full, then those whose time series take most, five at most."""

    free_bytes: int
    total_bytes: int
    days_left: float | None
    companies: list[CompanyDisk]


class BackupRecord(msgspec.Struct):
    """The last backup. ``ended``: of the last that succeeded; ``failed``: of a failure since then, which ``last_error``
    tells; null for never. ``keys``: sealed, or left out."""

    ended: str | None
    failed: str | None
    last_error: str
    target: str
    keys: str
    size_bytes: int
    put_bytes: int
    took_s: float


class BridgeRecord(msgspec.Struct):
    """A bridge to another broker. ``connected_since``: null while the link is down; ``last_error`` says why."""

    name: str
    connected_since: str | None
    last_error: str
    queued: int
    queued_bytes: int
    connects: int
    sent: int
    received: int
    dropped: int
    expired: int
    refused_by_remote: int
    refused_here: int


class PlatformStatus(msgspec.Struct):
    """How the machine is at ``time``. ``parts``: of ``/readyz``; each maps to why it isn't ready, nothing where it is.

    ``reasons``: code and parameters of why, where it has any. ``memory_bytes``: what waits or is kept for others, and
    what it may be at most (0: no ceiling).
    """

    time: str
    version: str
    up_s: int
    parts: dict[str, str]
    reasons: dict[str, Reason]
    tasks: list[TaskRecord]
    disk: DiskRecord | None
    backup: BackupRecord | None
    bridges: list[BridgeRecord]
    memory_bytes: int
    memory_most_bytes: int


async def handle_get_platform_status(services: Services, actor: Actor, request: PlatformStatusQuery) -> PlatformStatus:
    """How the machine is.

    Raises:
        NotPermitted: of a company's administrator: the machine is of all.
    """
    if not actor.is_super:
        raise NotPermitted(say("machine_for_super_users"))
    disk = await services.attention.disk.look()
    companies = services.attention.series.largest(MOST_COMPANIES)
    parts = (await check_readiness(services.readiness)).parts
    return PlatformStatus(
        time=format_spaced(now_us(), services.zone),
        version=services.version,
        up_s=int(time.monotonic() - services.began_s),
        parts={name: each.reason for name, each in parts.items()},
        reasons={name: each.told for name, each in parts.items() if each.told is not msgspec.UNSET},
        tasks=[TaskRecord(*each) for each in (services.tasks.all_tasks() if services.tasks is not None else ())],
        disk=None if disk is None else DiskRecord(*disk, [of_disk(each) for each in companies]),
        backup=_backup(services),
        bridges=[_bridge(services, each) for each in services.bridges],
        memory_bytes=services.memory.total_bytes,
        memory_most_bytes=services.memory.most_bytes if services.memory.most_bytes != NO_CEILING else 0,
    )


def _backup(services: Services) -> BackupRecord | None:
    """None where no backup was ever made or tried."""
    found = services.backups
    if found is None or not (found.ended_us or found.failed_us):
        return None
    return BackupRecord(
        ended=_text(services, found.ended_us),
        failed=_text(services, found.failed_us),
        last_error=found.last_error,
        target=found.target,
        keys=found.keys,
        size_bytes=found.size,
        put_bytes=found.put_bytes,
        took_s=round(found.took_s, 1),
    )


def _bridge(services: Services, bridge: Bridge) -> BridgeRecord:
    status = bridge.status()
    return BridgeRecord(
        name=bridge.name,
        connected_since=_text(services, status.connected_since_us or 0),
        last_error=status.last_error,
        queued=status.queued,
        queued_bytes=status.queued_bytes,
        connects=status.connects,
        sent=status.sent,
        received=status.received,
        dropped=status.dropped,
        expired=status.expired,
        refused_by_remote=status.refused_by_remote,
        refused_here=status.refused_here,
    )


def _text(services: Services, time_us: int) -> str | None:
    return format_spaced(time_us, services.zone) if time_us else None


OPERATIONS = (
    Operation(
        name="get_platform_status",
        summary="How the machine is: parts, tasks, disk, backup, bridges, memory; for super users",
        request=PlatformStatusQuery,
        result=PlatformStatus,
        permission=Role.ADMIN,
        handler=handle_get_platform_status,
    ),
)
