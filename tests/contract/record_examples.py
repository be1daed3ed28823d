"""Fills in the answers of ``platform/terrazzo/api/openapi/examples.json``:
``python tests/contract/record_examples.py``.

Add an action's request there (``"get_x": {"request": {...}}``) after the examples that it needs, run this, then
``python -m terrazzo.api.openapi.markdown``. Where a creation makes up a uid that later requests name, say which twelve
hexadecimal digits are to stand for it:
``"create_x": {"request": {...}, "answer": {"result": {"uid": "0c0ffee00001"}}}``.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from example_run import Rehearsal, with_tcp  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "platform" / "terrazzo" / "api" / "openapi" / "examples.json"
_TOKEN = re.compile(r"eyJ[\w.-]{16,}|tzk_[\w-]{24,}")


def record(examples: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The examples with the answers of a fresh platform; documented uids stay as they are."""
    with tempfile.TemporaryDirectory() as folder, with_tcp(Path(folder) / "data") as platform:
        rehearsal = Rehearsal(platform)
        recorded = {}
        for name, example in examples.items():
            answer = rehearsal.perform(example["request"])
            assert answer["code"] == 200, (name, answer)
            documented = example.get("answer", {})
            rehearsal.learn(documented, answer)
            if not is_current(rehearsal, documented, answer):
                documented = rehearsal.documented(answer)
            recorded[name] = {"request": example["request"], "answer": documented}
            print(name, file=sys.stderr)
        rehearsal.close()
    return recorded


def is_current(rehearsal: Rehearsal, documented: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether nothing but times and the like differs, which then can stay."""
    try:
        rehearsal.compare(documented, answer)
    except AssertionError:
        return False
    return True


def shortened(text: str) -> str:
    """Without the tokens' secret parts."""
    return _TOKEN.sub(lambda found: found.group()[:24], text)


def main() -> None:
    """Rewrites the file."""
    recorded = record(json.loads(EXAMPLES.read_text(encoding="utf-8")))
    EXAMPLES.write_text(shortened(json.dumps(recorded, indent=1, ensure_ascii=False)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
