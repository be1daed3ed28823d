"""One parser under atheris, its modules instrumented: started by ``fuzz.py``, with the options of libFuzzer."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

with atheris.instrument_imports(include=os.environ["TERRAZZO_FUZZED_MODULES"].split(",")):
    from kept_inputs import given_to, keyed

PARSER = keyed()[os.environ["TERRAZZO_FUZZED"]]


def try_one(data: bytes) -> None:
    """Lets pass what the parser declares."""
    try:
        PARSER.run(given_to(PARSER, data))
    except PARSER.raises:
        return


atheris.Setup(sys.argv, try_one)
atheris.Fuzz()
