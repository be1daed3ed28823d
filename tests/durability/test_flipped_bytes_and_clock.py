"""``make torture``'s flipped bits and jumps of the clock in short."""

from __future__ import annotations

from pathlib import Path

import pytest
from clock_rounds import jump_again_and_again, require_faketime
from flipped_bytes import CHECKED, KINDS, UNCHECKED, Seen, flip_again_and_again

from length import rounds

pytestmark = pytest.mark.timeout(900)


def test_a_flipped_bit_in_what_has_checksums_is_told(tmp_path: Path) -> None:
    """Of a table, a log, the manifest and the name of it, in the time series."""
    count = rounds(4, len(KINDS))
    found = flip_again_and_again(tmp_path, count, first=0)
    assert found.rounds == count
    seen = {what for kind in CHECKED for what in found.found.get(kind, {})}
    assert "unnoticed" not in seen
    assert any("told by" in what for what in seen), "a bit of the manifest at least"


def test_each_kind_of_file_is_there_and_none_twice() -> None:
    assert len(set(KINDS)) == len(CHECKED) + len(UNCHECKED)
    assert str(Seen(frozenset(), is_intact=False)) == "unnoticed"
    assert str(Seen(frozenset(), is_intact=True)) == "nothing lost"
    assert str(Seen(frozenset({"doctor", "log"}), is_intact=True)) == "told by doctor and log, nothing lost"


def test_the_clock_jumps_there_and_back(tmp_path: Path) -> None:
    require_faketime()
    found = jump_again_and_again(tmp_path, rounds(4, 10), first=0)
    assert (found.lost, found.doubled) == (0, 0)
    assert found.acknowledged > 0
