"""The garbage collector holds the loop for no longer than it takes to look at what has come lately."""

from __future__ import annotations

import json
import subprocess
import sys

LONGEST_S = 0.06  # of processor time; what is looked at takes 5 to 25 ms, all of it more than 200

# In a process of its own: what other tests left behind would be looked at too, and stay frozen after it.
_ROWS_THAT_STAY = """
import gc, json, time
from terrazzo.bulk.rows import SourceRow
from terrazzo.runtime import process

began_s, found = 0.0, []

def on_collection(phase, about):
    global began_s
    if phase == "start":
        began_s = time.thread_time()
    else:
        found.append(time.thread_time() - began_s)

process.tune_collector()
gc.callbacks.append(on_collection)
rows = [SourceRow(number, {"uid": "u", "list": [[], []], "more": {"a": []}}) for number in range(400_000)]
print(json.dumps(found))
"""


def test_four_hundred_thousand_rows_that_stay_are_not_looked_at_in_one_go() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _ROWS_THAT_STAY], check=True, capture_output=True, text=True, timeout=120
    )
    found = json.loads(said.stdout)
    assert len(found) > 10
    assert max(found) < LONGEST_S, sorted(found)[-5:]
