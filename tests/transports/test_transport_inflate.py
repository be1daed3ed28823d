"""The inflater of request bodies: what was compressed comes out again, anything else is refused."""

from __future__ import annotations

import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.api.transports.bodies.inflate import STEP_BYTES, BadCoding, Inflater


@given(st.binary(max_size=2_000), st.lists(st.integers(1, 300), min_size=1), st.sampled_from(["gzip", "deflate"]))
def test_whatever_comes_is_inflated_or_refused(body: bytes, sizes: list[int], coding: str) -> None:
    good = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
    for data, is_good in ((good, True), (body, False)):
        inflater, found, rest, turn = Inflater(coding), b"", data, 0
        try:
            while rest or inflater.has_more:
                size = sizes[turn % len(sizes)]
                piece = inflater.step(rest[:size])
                assert len(piece) <= STEP_BYTES
                found, rest, turn = found + piece, rest[size:], turn + 1
            inflater.end()
        except BadCoding:
            assert not is_good
        else:
            assert found == body or not is_good
