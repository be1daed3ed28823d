"""What a running platform says of itself to ``terrazzo support-bundle``: metrics, tasks, threads, limits, its log."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from terrazzo.runtime.control_socket import Answerer, Say
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.runtime.recent_log import RecentLog, place
from terrazzo.runtime.supervisor import Supervisor

PART_BYTES = 400_000  # of one part; a line of the control socket takes 1 MiB
CUT = "\n... the rest is left out: it is too long\n"

_MOST_FRAMES = 40
_MOST_THREADS = 200
_MOST_KINDS = 200
_RESOURCES = ("NOFILE", "NPROC", "AS", "DATA", "STACK", "MEMLOCK", "FSIZE", "CORE")


def start_recent_log(lifetime: Lifetime) -> RecentLog:
    """Begins to keep the log's last lines; ends with the platform."""
    recent = RecentLog(lambda: lifetime.tasks.tasks)
    logging.getLogger().addHandler(recent)
    lifetime.callback(logging.getLogger().removeHandler, recent)
    return recent


def support_answerer(recent: RecentLog, tasks: Supervisor, collectors: Callable[[], Iterable[Collector]]) -> Answerer:
    """Says a line for each part, ``part`` (a file's name) and ``text``, and how many there were."""

    async def answer(_question: dict[str, Any], say: Say) -> dict[str, Any]:
        parts = {
            "log.json": _json(recent.lines()),
            "tasks.json": _json({"long-lived": [each._asdict() for each in tasks.all_tasks()], "all": _task_counts()}),
            "threads.txt": _threads(),
            "process.json": _json(process_figures()),
            "metrics.txt": _metrics(collectors()),
        }
        for name, text in parts.items():
            say({"part": name, "text": cut(text)})
            await asyncio.sleep(0)
        return {"parts": len(parts)}

    return answer


def cut(text: str, *, most_bytes: int = PART_BYTES) -> str:
    """A text of at most so many bytes of UTF-8, and the word that there was more."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most_bytes else data[:most_bytes].decode("utf-8", "ignore") + CUT


def process_figures() -> dict[str, Any]:
    """Limits of the system on this process and what it has: descriptors, threads, bytes of memory (Linux)."""
    return {"limits": dict(_limits()), "open_descriptors": _open_descriptors(), "memory": dict(_memory())}


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()


def _metrics(collectors: Iterable[Collector]) -> str:
    registry = CollectorRegistry()
    for each in collectors:
        registry.register(each)
    return generate_latest(registry).decode("utf-8", "replace")


def _task_counts() -> dict[str, int]:
    """How many tasks of the event loop there are of each kind, by the function that they run."""
    kinds = Counter(getattr(task.get_coro(), "__qualname__", "unknown") for task in asyncio.all_tasks())
    return dict(kinds.most_common(_MOST_KINDS))


def _threads() -> str:
    """Where each thread is: places in the source, no values."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    told = []
    for ident, frame in list(sys._current_frames().items())[:_MOST_THREADS]:
        told.append(f"thread {names.get(ident, 'unknown')}")
        stack = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=_MOST_FRAMES, lookup_lines=False)
        told += [f"    {place(each.filename, each.lineno, each.name)}" for each in stack]
    return "\n".join(told) + "\n"


def _limits() -> Iterable[tuple[str, str]]:
    import resource  # not on every system

    for name in _RESOURCES:
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            soft, hard = ("unlimited" if each < 0 else str(each) for each in resource.getrlimit(number))
            yield name.lower(), f"{soft} (at most {hard})"


def _open_descriptors() -> int | None:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return None


def _memory() -> Iterable[tuple[str, str]]:
    """Lines of ``/proc/self/status`` that are about memory and threads [proc(5)]."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition(":")
        if name.startswith(("Vm", "Rss", "Threads")):
            yield name, " ".join(value.split())
