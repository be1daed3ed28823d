"""Long-lived tasks have one way to start; what starts a task otherwise is listed here, with the reason."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

PLATFORM = Path(__file__).parents[2] / "platform" / "terrazzo"
STARTS = {"create_task", "ensure_future", "TaskGroup", "run_coroutine_threadsafe"}
ALLOWED = {
    ("runtime/supervisor.py", 1): "the one way",
    ("runtime/process.py", 2): "the start of a front, or waits for the end of the process, which awaits both",
    ("ingest/pipeline.py", 1): "one commit: it outlives a failure of the writer, which looks at what became of it",
    ("async_engine.py", 1): "gives back one connection: whoever had it awaits that, cancelled or not",
    ("commands/submissions.py", 1): "one submission: whoever asked awaits it; given up, what it raises is logged",
    ("database/database.py", 1): "opens one connection: whoever needs it awaits that, and closing waits for it",
    ("embedded/front_terminals.py", 2): "one request to a front; their group is of the task that asks",
    ("embedded/peers.py", 2): "what one node is told; their group is of the task that tells all",
    ("embedded/retained_log.py", 3): "one message to the log; their group is of the task that sends all",
    ("embedded/sessions/feeder.py", 2): "what one session is handed; their group is of the task that feeds all",
    ("embedded/sessions/queue_sender.py", 3): "one group to the log; their group is of the task that sends all",
    ("embedded/sessions/record_writer.py", 2): "one record to the log; their group is of the task that writes all",
    ("runtime/node.py", 2): "waits for the lease, or for the end of the process, which awaits it",
    ("metadata/repositories/whole_table.py", 1): "the rows after these: whoever reads them awaits it",
    ("replication/leading.py", 1): "one change: whoever asked awaits it; given up, the next one waits for its end",
    ("api/kernel/readiness.py", 2): "one request to /readyz, which awaits the checks",
    ("api/transports/websocket.py", 2): "the end of the server, which awaits each goodbye",
    ("api/transports/bulk_routes.py", 2): "one import: the request awaits it",
    ("api/transports/conversation.py", 2): "one connection: whoever reads from it gets what answering raised",
    ("api/transports/tcp.py", 1): "one connection, as long as it lasts",
    ("api/transports/connection.py", 1): "one request, whose connection waits for it",
    ("api/transports/tls.py", 1): "one handshake, until its connection is there or it is given up",
}


def starts(source: str) -> int:
    """How many tasks a module starts by itself."""
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in STARTS
        for node in ast.walk(ast.parse(source))
    )


def test_nobody_else_starts_tasks() -> None:
    found = {
        (str(path.relative_to(PLATFORM)), count)
        for path in PLATFORM.rglob("*.py")
        if (count := starts(path.read_text(encoding="utf-8")))
    }
    assert found - ALLOWED.keys() == set(), "spawn it through terrazzo.ports.tasks, or say here why not"
    assert ALLOWED.keys() - found == set(), "it is gone: so is its line here"
    assert max(Counter(name for name, _ in ALLOWED).values()) == 1


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("asyncio.create_task(work())", 1),
        ("loop.create_task(work()); asyncio.ensure_future(work())", 2),
        ("tasks.spawn('name', work, OnFailure.RESTART)", 0),
    ],
)
def test_a_start_is_seen(source: str, count: int) -> None:
    assert starts(source) == count
