"""A replay writes so much at a time: everybody's commits go through the same thread."""

from __future__ import annotations

import pytest
from replay_stand import RICH, Stand

from terrazzo.mapping.replay import run


async def test_a_piece_has_a_size_in_bytes_of_what_is_made(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    replace = stand.store.replace

    async def measured(series, start_us, end_us, records, *, given):
        sizes.append(sum(len(record.body) for record in records))
        return await replace(series, start_us, end_us, records, given=given)

    await stand.report(*((second, "t1", {"T": second}) for second in range(60)))
    before = await stand.mosaic()
    await stand.remap(RICH)
    monkeypatch.setattr(stand.store, "replace", measured)
    monkeypatch.setattr(run, "_PIECE_BYTES", 100)
    assert (await stand.ended(await stand.submit(-10, 100)))["state"] == "done"
    assert len(sizes) >= 5, "not one"
    assert max(sizes) < 100 + 50, "and the last record"
    assert len(await stand.mosaic()) == len(before)
