"""Where logins are known to come from: bounded, kept over a restart, and forgotten with the record."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from terrazzo import line_file
from terrazzo.logins.places import MOST_PLACES, KnownPlaces, Principal

BO = Principal("bo", 1)


def test_places_are_read_back_without_having_been_closed(tmp_path: Path) -> None:
    path = tmp_path / "places"
    first = KnownPlaces(path)
    first.add(BO, "10.0.0.1")
    first.add(BO, "2001:db8::/64")
    first.add(Principal("al", 2, 7), "10.0.0.1")
    again = KnownPlaces(path, epoch_of={1: 0, 2: 7}.get)
    assert all(again.has(BO, share) for share in ("10.0.0.1", "2001:db8::/64"))
    assert again.has(Principal("al", 2, 7), "10.0.0.1")
    assert not again.has(BO, "10.0.0.2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for each in (first, again):
        each.close()


def test_the_one_proven_longest_ago_makes_room(tmp_path: Path) -> None:
    places = KnownPlaces(tmp_path / "places")
    for number in range(MOST_PLACES):
        places.add(BO, f"10.0.0.{number}")
    places.add(BO, "10.0.0.0")
    places.add(BO, "10.0.1.1")
    assert places.has(BO, "10.0.0.0")
    assert not places.has(BO, "10.0.0.1")
    assert sum(places.has(BO, f"10.0.{net}.{number}") for net in (0, 1) for number in range(10)) == MOST_PLACES
    places.close()


def test_what_is_forgotten_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "places"
    places = KnownPlaces(path)
    places.add(BO, "10.0.0.1")
    places.forget(1)
    assert not places.has(BO, "10.0.0.1")
    again = KnownPlaces(path)
    assert not again.has(BO, "10.0.0.1")
    for each in (places, again):
        each.close()


def test_places_of_former_credentials_and_of_records_that_are_gone_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "places"
    places = KnownPlaces(path)
    for record_id in (1, 2, 3):
        places.add(Principal("", record_id), "10.0.0.1")
    assert not places.has(Principal("", 1, 1), "10.0.0.1"), "it has another password now"
    places.add(Principal("", 1, 1), "10.0.0.2")
    places.close()
    again = KnownPlaces(path, epoch_of={1: 1, 2: 5}.get)
    again.close()
    assert path.read_text() == "1 1 10.0.0.2\n"


def test_every_beginning_of_the_file_is_read(tmp_path: Path) -> None:
    """A crash may leave any: no place is made of a line that was cut off."""
    path = tmp_path / "places"
    whole = b"1 0 10.0.0.12\n2 0 10.0.0.1\n1\n3 0 2001:db8::/64\n"
    known = {(1, "10.0.0.12"), (2, "10.0.0.1"), (3, "2001:db8::/64")}
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        places = KnownPlaces(path)
        places.close()
        lines = [line.split() for line in path.read_text().splitlines()]
        assert {(int(record), share) for record, _, share in lines} <= known
    assert len(lines) == 2


def test_broken_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "places"
    path.write_bytes(b"\n1\nx 0 10.0.0.1\n1 x 10.0.0.1\n1 0 \n1 0 a b\n\xff\xfe\n1 0 10.0.0.1\n")
    places = KnownPlaces(path)
    assert places.has(BO, "10.0.0.1")
    places.close()
    assert path.read_text() == "1 0 10.0.0.1\n"


def test_the_file_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_file, "_COMPACT_LINES", 100)
    path = tmp_path / "places"
    places = KnownPlaces(path)
    for number in range(2_000):
        places.add(BO, f"10.0.{number // 250}.{number % 250}")
        assert path.read_text().count("\n") <= 100 + 3 * MOST_PLACES
    places.close()


def test_a_full_disk_keeps_nobody_out_and_spoils_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "places"
    places, write = KnownPlaces(path), os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, data: write(file, data[:-3]))
        places.add(BO, "10.0.0.17")
    with monkeypatch.context() as patched:

        def full(_file: int, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(os, "write", full)
        places.add(BO, "10.0.0.3")
    places.add(BO, "10.0.0.4")
    assert places.has(BO, "10.0.0.3")
    places.close()
    assert "No space left" in caplog.text
    again = KnownPlaces(path)
    assert again.has(BO, "10.0.0.4")
    assert not again.has(BO, "10.0.0.3")
    again.close()
