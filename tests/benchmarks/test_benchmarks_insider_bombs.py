"""Each bomb of those who have logged in, once: refused in words, or taken at little cost, while others are answered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from length import rounds

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from bombs.bomb import Bomb, Site, told  # noqa: E402
from bombs.requests import REQUESTS  # noqa: E402
from bombs.terminals import SEALED, TERMINALS  # noqa: E402


@pytest.mark.timeout(rounds(300, 900))
def test_they_are_refused_in_words_while_others_are_answered() -> None:
    command = [sys.executable, str(BENCHMARKS / "insider_bombs.py"), "--rounds", str(rounds(1, 5))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=rounds(280, 850))
    assert ended.returncode == 0, ended.stdout[-2_000:] + ended.stderr[-4_000:]
    assert "all refused in words" in ended.stdout
    for bomb in (*REQUESTS, *TERMINALS):
        assert f"| {bomb.who} | {bomb.name} |" in ended.stdout


def test_all_roles_and_ways_are_among_them() -> None:
    assert {bomb.who for bomb in REQUESTS} == {"viewer", "admin"}
    assert {bomb.who for bomb in TERMINALS} == {"terminal", SEALED}
    names = [bomb.name for bomb in (*REQUESTS, *TERMINALS)]
    assert len(set(names)) == len(names)


async def _send(_site: Site, _who: str) -> str:
    return "taken"


def test_an_answer_that_says_nothing_is_wrong() -> None:
    assert told(200, b'{"code": 10401, "info": "uid: is required"}') == "10401 uid: is required"
    assert told(200, b'{"code": 200, "info": "OK"}') == "taken"
    assert told(500, b"Internal Server Error") == "500 Internal Server Error"
    refused = Bomb("a bomb", "viewer", _send)
    assert refused.wrong(["10401 uid: is required"]) == []
    assert refused.wrong(["taken", "500 Internal Server Error", "no answer"]) != []
    assert Bomb("a bomb", "viewer", _send, refused=()).wrong(["taken", "10401 uid"]) == ["10401 uid"]
