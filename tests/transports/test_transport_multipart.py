"""Forms of several parts: what is in them however they arrive, what is none, and what it may cost."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.api.transports.bodies.forms import read_multipart
from terrazzo.api.transports.bodies.multipart import (
    MOST_HEADER_BYTES,
    MOST_NAME_CHARS,
    MOST_PARTS,
    BadForm,
    FormPart,
    MultipartParser,
    boundary_of,
    parse_parameters,
)

TYPE = "multipart/form-data; boundary=x"
FIELD = b"Content-Disposition: form-data; name="


def form(*parts: tuple[bytes, bytes], end: bytes = b"--x--\r\n") -> bytes:
    """Heads and contents."""
    return b"".join(b"--x\r\n%b\r\n\r\n%b\r\n" % part for part in parts) + end


def parse(pieces: list[bytes], boundary: str = "x") -> list[tuple[FormPart, bytes]]:
    parser, found = MultipartParser(boundary), list[tuple[FormPart, bytes]]()
    for piece in pieces:
        for event in parser.feed(piece):
            if isinstance(event, FormPart):
                found.append((event, b""))
            else:
                found[-1] = (found[-1][0], found[-1][1] + event)
    parser.end()
    return found


CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from([b"\r\n", b"--", b"--x"[:2], b"\r", b"-", b"\r\n-", b"x"]), max_size=12).map(b"".join),
).filter(lambda content: b"\r\n--x" not in b"\r\n" + content + b"\r\n")


@given(st.lists(CONTENTS, max_size=5), st.lists(st.integers(1, 40), min_size=1), st.binary(max_size=20))
def test_a_form_is_what_was_sent_however_it_is_cut(contents: list[bytes], cuts: list[int], epilogue: bytes) -> None:
    whole = form(*((FIELD + b"n%d" % number, content) for number, content in enumerate(contents))) + epilogue
    pieces, turn = list[bytes](), 0
    while whole:
        size = cuts[turn % len(cuts)]
        pieces.append(whole[:size])
        whole, turn = whole[size:], turn + 1
    assert parse(pieces) == [(FormPart(f"n{n}", None, "", ""), content) for n, content in enumerate(contents)]


@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([b"--x", b"\r\n", b"--", FIELD])), max_size=30))
def test_whatever_comes_is_a_form_or_refused(pieces: list[bytes]) -> None:
    with suppress(BadForm):
        assert all(len(part.name) <= MOST_NAME_CHARS for part, _ in parse(pieces))


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (FIELD + b"a", FormPart("a", None, "", "")),
        (FIELD + b'"a b"', FormPart("a b", None, "", "")),
        (FIELD + b'a; filename="c.txt"\r\nContent-Type: text/csv', FormPart("a", "c.txt", "text/csv", "")),
        (FIELD + b'a; filename="q\\"uote\\\\.txt"', FormPart("a", 'q"uote\\.txt', "", "")),
        (FIELD + b'a; filename="C:\\dir\\f.txt"', FormPart("a", "C:\\dir\\f.txt", "", "")),
        (FIELD + b"a; filename=x; filename*=UTF-8''%e2%82%ac.txt", FormPart("a", "\u20ac.txt", "", "")),
        (b'content-disposition:form-data;name=a;filename=""', FormPart("a", "", "", "")),
        (FIELD + "\u20ac".encode(), FormPart("\u20ac", None, "", "")),
        (b"Content-Type: text/plain; charset=GBK\r\n" + FIELD + b"a", FormPart("a", None, "text/plain", "GBK")),
    ],
)
def test_heads_of_parts(head: bytes, part: FormPart) -> None:
    assert parse([form((head, b""))]) == [(part, b"")]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it ends before the first boundary"),
        (b"--x\r\n", "it ends in the headers of a part"),
        (b"--x\r\n" + FIELD + b"a\r\n\r\nhalf", "it ends in a part"),
        (b"--x\r\n" + FIELD + b"a\r\n\r\nhalf\r\n--x", "it ends behind a boundary"),
        (b"--xy\r\n", "something stands behind a boundary"),
        (b"--x" + b" " * 100 + b"\r\n", "something stands behind a boundary"),
        (form((b"Content-Type: text/plain", b"")), "a part has no name"),
        (form((b"", b"")), "a part has no name"),
        (form((b"Content-Disposition: attachment; name=a", b"")), "a part has no name"),
        (form((FIELD + b"a\r\nContent-Type: multipart/mixed; boundary=y", b"")), "a part has parts of its own"),
        (form((FIELD + b"a" * (MOST_NAME_CHARS + 1), b"")), "the name of a part is longer than 256 characters"),
        (
            form((FIELD + b"a\r\nX: " + b"y" * MOST_HEADER_BYTES, b"")),
            "the headers of a part are longer than 4096 bytes",
        ),
        (b"--x\r\n" + b"Y: y\r\n" * 100_000, "the headers of a part are longer than 4096 bytes"),
        (form(*[(FIELD + b"a", b"")] * (MOST_PARTS + 1)), "it has more than 256 parts"),
    ],
)
def test_what_is_no_form_is_told_why(body: bytes, reason: str) -> None:
    for pieces in ([body], [body[at : at + 7] for at in range(0, len(body), 7)]):
        with pytest.raises(BadForm, match=reason):
            parse(pieces)


@pytest.mark.parametrize("charset", ["idna", "punycode", "rot13", "nothing", "x" * 5_000])
def test_charsets_are_known_ones(charset: str) -> None:
    body = form((FIELD + b"a\r\nContent-Type: text/plain; charset=" + charset[:3_000].encode(), b"x"))
    with pytest.raises(BadForm, match=r"charset: .* is unknown here"):
        read_multipart(body, TYPE, takes_files=False)


def test_fields_data_and_files() -> None:
    body = form(
        (FIELD + b"to", "\u00e9".encode()),
        (FIELD + b"old\r\nContent-Type: text/plain; charset=ISO-8859-1", b"\xe9"),
        (FIELD + b"data", b'{"a": 1}'),
        (FIELD + b'f; filename="/etc/a.pdf"\r\nContent-Type: application/pdf', b"%PDF"),
    )
    found = read_multipart(body, TYPE, takes_files=True)
    assert found.fields == [("to", "\u00e9"), ("old", "\u00e9")]
    assert found.data == b'{"a": 1}'
    assert [(each.name, each.media_type, each.content) for each in found.files] == [
        ("a.pdf", "application/pdf", b"%PDF")
    ]
    assert read_multipart(body, TYPE, takes_files=False).files == ()


@pytest.mark.parametrize("text", ["", "; boundary", '; boundary=""', "; boundary=" + "x" * 71, "; boundary=\u00e9"])
def test_boundaries_that_are_none(text: str) -> None:
    with pytest.raises(BadForm, match="boundary"):
        boundary_of("multipart/form-data" + text)


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n--" * 500_000,
        b"\r\n-" * 600_000,
        b"-" * 2_000_000,
        b"\r" * 2_000_000,
        form((FIELD + b"a", b"\r\n--" * 500_000)),
        form(*[(FIELD + b"a", b"")] * MOST_PARTS) + b"--x" * 500_000,
    ],
    ids=["starts of boundaries", "less of them", "hyphens", "returns", "in a part", "behind the end"],
)
def test_two_million_bytes_take_little_time_in_whatever_pieces(data: bytes) -> None:
    for size in (len(data), 65_536, 1_000):
        began = time.process_time()
        with suppress(BadForm):
            parse([data[at : at + size] for at in range(0, len(data), size)], boundary="--" if size == 1_000 else "x")
        assert time.process_time() - began < 2


@given(st.text(max_size=300))
def test_parameters_of_anything(text: str) -> None:
    value, parameters = parse_parameters(text)
    assert value == text.partition(";")[0].strip().lower()
    assert all(name == name.lower() for name in parameters)


@pytest.mark.parametrize(
    "text", [";" * 8_000, '; a="' * 1_500, '; a="\\' * 1_500, "; " * 4_000, ";a=" * 2_700, ";" + "a" * 8_000]
)
def test_parameters_are_read_in_little_time(text: str) -> None:
    began = time.process_time()
    parse_parameters(text)
    assert time.process_time() - began < 0.2
