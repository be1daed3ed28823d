"""Inputs that a coverage-guided fuzzer has found (``make fuzz``), kept for the ordinary run; by parser.

``kept_inputs.json``: Base64 of UTF-8 or bytes by the parser's key. Those that crashed come first, and stay.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from parser_kinds import Parser
from parser_table import PARSERS
from parsers_of_formats import ALSO_FUZZED

FILE = Path(__file__).with_name("kept_inputs.json")


def keyed() -> dict[str, Parser[Any]]:
    """All parsers that are fuzzed, by a key of its own each: the name, numbered where several have one."""
    found: dict[str, Parser[Any]] = {}
    for parser in (*PARSERS, *ALSO_FUZZED):
        key, number = parser.name, 1
        while key in found:
            number += 1
            key = f"{parser.name}#{number}"
        found[key] = parser
    return found


def read_kept() -> dict[str, list[bytes]]:
    """What is kept, by key."""
    found = json.loads(FILE.read_text())
    return {key: [base64.b64decode(each) for each in texts] for key, texts in found.items()}


def write_kept(kept: dict[str, list[bytes]]) -> None:
    """Writes the file, sorted by key."""
    told = {key: [base64.b64encode(each).decode() for each in kept[key]] for key in sorted(kept) if kept[key]}
    FILE.write_text(json.dumps(told, indent=1) + "\n")


def given_to(parser: Parser[Any], data: bytes) -> Any:
    """The input that some bytes are for a parser, of its kind and no longer than can reach it."""
    given: Any = data if isinstance(parser.samples[0], bytes) else data.decode("utf-8", "replace")
    return given[: parser.most]
