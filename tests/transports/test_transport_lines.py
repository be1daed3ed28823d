"""Lines out of bytes, however they arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.api.transports.lines import Lines, LineTooLong

TEXT = st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"").replace(b"\r", b""))


@given(st.lists(TEXT, max_size=10), st.lists(st.integers(0, 200), max_size=20), st.booleans())
def test_lines_are_those_between_the_line_feeds(texts: list[bytes], cuts: list[int], crlf: bool) -> None:
    data = b"".join(text + (b"\r\n" if crlf else b"\n") for text in texts)
    lines = Lines(20)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(places):
        lines.feed(data[start:end])
    assert not lines.is_partial
    assert [lines.next() for _ in texts] == texts
    assert lines.next() is None


@pytest.mark.parametrize("chunks", [[b"123456\n"], [b"123", b"456"], [b"123456"], [b"12345", b"6\n"], [b"1\n123456\n"]])
def test_a_line_over_the_limit_ends_it_after_the_lines_before(chunks: list[bytes]) -> None:
    lines = Lines(5)
    for chunk in chunks:
        lines.feed(chunk)
    lines.feed(b"7\n8\n")
    if chunks[0].startswith(b"1\n"):
        assert lines.next() == b"1"
    for _ in range(2):
        with pytest.raises(LineTooLong):
            lines.next()


def test_the_line_at_the_limit_and_the_last_one_without_a_line_feed_count() -> None:
    lines = Lines(5)
    lines.feed(b"12345\r\n123")
    assert (lines.next(), lines.next(), lines.is_partial) == (b"12345", None, True)
    lines.end()
    assert (lines.next(), lines.next()) == (b"123", None)
