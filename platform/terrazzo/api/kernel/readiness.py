"""Whether every part accepts work, asked afresh at each ``/readyz``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import msgspec

from terrazzo.api.kernel.services import ReadinessCheck
from terrazzo.ports.tasks import TaskHealth
from terrazzo.reasons import Reason, reason_of, say, told_by
from terrazzo.sparse_log import SparseLog

CHECK_TIMEOUT_S = 2.0
_log = SparseLog(logging.getLogger(__name__))


class ReadinessPart(msgspec.Struct, omit_defaults=True):
    """One part's state; ``reason`` says why it isn't ready, ``told`` its code and parameters, where it has any."""

    ready: bool
    reason: str = ""
    told: Reason | msgspec.UnsetType = msgspec.UNSET


class Readiness(msgspec.Struct, omit_defaults=True):
    """The answer of ``/readyz``: ready when every part is.

    ``degraded``: the long-lived tasks that are down or failed a moment ago, with the class of their last error. Only
    what is down and serves what ready means takes the readiness away, as the part ``tasks``.
    """

    ready: bool
    parts: dict[str, ReadinessPart]
    degraded: dict[str, str] = {}


async def check_readiness(checks: Mapping[str, ReadinessCheck], tasks: TaskHealth | None = None) -> Readiness:
    """Asks all parts at once; one that doesn't answer within ``CHECK_TIMEOUT_S`` isn't ready."""
    async with asyncio.TaskGroup() as group:
        asked = {
            name: group.create_task(_check(name, check), name=f"readiness of {name}") for name, check in checks.items()
        }
    parts = {name: task.result() for name, task in asked.items()}
    down = tasks.not_ready() if tasks is not None else {}
    if down:
        parts["tasks"] = ReadinessPart(False, ", ".join(f"{name}: {error}" for name, error in down.items()))
    degraded = tasks.degraded() if tasks is not None else {}
    return Readiness(all(part.ready for part in parts.values()), parts, degraded)


async def _check(name: str, check: ReadinessCheck) -> ReadinessPart:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await check()
    except TimeoutError:
        reason: str = say("part_is_silent", seconds=CHECK_TIMEOUT_S)
    except Exception as error:  # noqa: BLE001 - whatever a part raises means that it isn't ready, and is shown
        reason = told_by(error) or type(error).__name__
    else:
        return ReadinessPart(True)
    _log.warning("%s is not ready: %s", name, reason)
    return ReadinessPart(False, reason[:], reason_of(reason))
