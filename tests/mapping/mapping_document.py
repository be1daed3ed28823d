"""The worked example of ``docs/mapping.md``, run: ``python mapping_document.py`` writes what comes out into the file.

In the file, ``json rows`` and ``json retainer`` blocks are the tables, ``text run`` blocks the messages, each with what
it makes, indented, below it:

    08:00:00 plant-a {"t_supply": 71}
      mosaic {"SUPPLY": 7.1}
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
from mapping_rig import OBJECT, T0, Stand

from terrazzo.mapping.effects import Effect, EventRaised, LabelOpened

PATH = Path(__file__).parents[2] / "docs" / "mapping.md"
_BLOCK = re.compile(r"^```(json rows|json retainer|text run)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MESSAGE = re.compile(r"(\d\d):(\d\d):(\d\d) (\S+) (.*)")
_DAY_S = 86_400


def worked(document: str) -> str:
    """The document with what the messages really make."""
    blocks = [(found[1], found[2]) for found in _BLOCK.finditer(document)]
    rows = [row for kind, text in blocks if kind == "json rows" for row in json.loads(text)]
    stand = Stand(rows, terminals=("plant-a", "plant-b"))
    stand.retain(*[tuple(row) for kind, text in blocks if kind == "json retainer" for row in json.loads(text)])
    stand.catalogue.collected[OBJECT]["water-analysis"] = 412
    return _BLOCK.sub(lambda found: _ran(stand, found) if found[1] == "text run" else found[0], document)


def _ran(stand: Stand, found: re.Match[str]) -> str:
    lines = []
    for line in found[2].splitlines():
        if message := _MESSAGE.fullmatch(line):
            lines += [line, *_outcome(stand, message)]
    return "```text run\n" + "\n".join(lines) + "\n```"


def _outcome(stand: Stand, message: re.Match[str]) -> list[str]:
    hours, minutes, seconds = (int(message[group]) for group in (1, 2, 3))
    midnight_s = T0 // 1_000_000 // _DAY_S * _DAY_S - T0 // 1_000_000
    at_s = midnight_s + hours * 3600 + minutes * 60 + seconds
    records = [msgspec.msgpack.decode(record.body) for record in stand.take(message[4], json.loads(message[5]), at_s)]
    shown = [f"  mosaic {json.dumps(body, ensure_ascii=False)}" for body in records]
    shown += [f"  {_shown(effect)}" for effect in stand.effects()]
    return shown or ["  nothing"]


def _shown(effect: Effect) -> str:
    if isinstance(effect, EventRaised):
        given: dict[str, Any] = {"value": effect.value, effect.extension_key: effect.extension_value}
        return f"event {effect.code} {json.dumps(given, ensure_ascii=False)}"
    opens = isinstance(effect, LabelOpened)
    return f"label {effect.code} opens, value {effect.value}" if opens else f"label {effect.code} closes"


if __name__ == "__main__":
    PATH.write_text(worked(PATH.read_text(encoding="utf-8")), encoding="utf-8")
