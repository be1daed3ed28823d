"""Text of others on a terminal: visible, and without a meaning for the terminal or for rich."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from terrazzo_broker.log_text import visible

if TYPE_CHECKING:
    from rich.text import Text

PRIVATE_UMASK = 0o077  # files that commands make in the data folder are their owner's alone


def cell(value: object, style: str = "") -> Text:
    """A cell of a table: no markup is read in it, and nothing in it steers the terminal."""
    from rich.text import Text

    return Text(visible(str(value)), style)


def say(*lines: str, to_stderr: bool = False) -> None:
    """Prints each text as one line; nothing in it steers the terminal, or passes for another line."""
    print("\n".join(map(visible, lines)), file=sys.stderr if to_stderr else sys.stdout)


def show_progress(text: str) -> None:
    """Has this in place of the last line of a terminal on standard error."""
    print(f"\r\033[K{visible(text)}", end="", file=sys.stderr, flush=True)


def end_progress() -> None:
    """Takes the line of ``show_progress`` away."""
    show_progress("")


def print_json(value: object) -> None:
    """Prints a value as one JSON document; on a terminal in ASCII, which steers none."""
    print(json.dumps(value, ensure_ascii=sys.stdout.isatty(), indent=2))
