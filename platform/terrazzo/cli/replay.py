"""``terrazzo replay``: recomputes an object's past on a running platform, and shows the progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from terrazzo.cli.connection import DEFAULT_URL, TokenOption, UrlOption, UserOption, connect, failed
from terrazzo.cli.options import JsonOption
from terrazzo.cli.shown import print_json, say
from terrazzo.client.errors import ClientError
from terrazzo_broker.log_text import visible

if TYPE_CHECKING:
    from terrazzo.client import Client

_LOOK_S = 0.3
_FAILED = 1  # exit status: it ended without being done
_UNFINISHED = ("waiting", "running")

Replay = dict[str, Any]


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo replay``."""
    app.command("replay")(replay)


def replay(
    object_id: Annotated[str, typer.Argument(metavar="OBJECT", help="The object's id.")],
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="Where the range begins.")],
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Where it ends; without it, now.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be.")] = False,
    url: UrlOption = DEFAULT_URL,
    user: UserOption = "admin",
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an object's mosaic, events and labels again from what its terminals reported."""
    asked = {"object_id": object_id, "start_time": start, "dry_run": int(dry_run)}
    if end is not None:
        asked["end_time"] = end
    try:
        with connect(url, user, token) as client:
            ended = _follow(client, client.call("replay", **asked)["id"])
    except ClientError as error:
        raise failed(error) from None
    if as_json:
        print_json(ended)
    else:
        say(_summary(ended))
    if ended["state"] != "done":
        raise typer.Exit(_FAILED)


def _follow(client: Client, replay_id: int) -> Replay:
    """Waits for a replay's end and returns it; interrupting the command cancels the replay."""
    try:
        with _bar() as show:
            while True:
                found: Replay = client.call("get_replay_item", id=replay_id)
                show(found)
                if found["state"] not in _UNFINISHED:
                    return found
                time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        found = client.call("cancel_replay", id=replay_id)
        return found | {"state": "cancelled"}


@contextmanager
def _bar() -> Iterator[Callable[[Replay], None]]:
    """A progress bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("waiting", total=None)

        def show(found: Replay) -> None:
            at = f"{found['state']}, at {found['position']}" if found["position"] else found["state"]
            bar.update(
                task,
                description=escape(visible(at)),
                completed=found["records_done"],
                total=found["records_total"] or None,
            )

        yield show


def _summary(found: Replay) -> str:
    head = f"replay {found['id']} of object {found['object_id']}: {found['state']}"
    if found["state"] != "done":
        return f"{head}: {found['info']}" if found["info"] else head
    counts = ", ".join(f"{name} {found[f'{name}_before']} -> {found[f'{name}_after']}" for name in _COUNTED)
    would = ", nothing was changed" if found["dry_run"] else ""
    skipped = f", {found['records_skipped']} skipped" if found["records_skipped"] else ""
    return f"{head}: {found['records_done']} reports{skipped}; {counts}{would}"


_COUNTED = ("mosaic", "events", "labels")
