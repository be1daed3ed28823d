"""How long tests go on that get surer with each round: short beside the others, long on their own (``make long``)."""

from __future__ import annotations

import os

IS_LONG = os.environ.get("TERRAZZO_LONG_TESTS") == "1"


def rounds(short: int, long: int) -> int:
    """How many rounds, kills, examples or packets a test has."""
    return long if IS_LONG else short
