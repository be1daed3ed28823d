"""What bridges bring of a company whose reports are not taken at present."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from terrazzo.embedded import held_reports
from terrazzo.embedded.held_reports import HeldReports


def batch(owner: str, payload: bytes = b"x", bridge: str = "north") -> Any:
    client = SimpleNamespace(owner=owner, client_id=f"bridge:{bridge}")
    return SimpleNamespace(client=client, messages=[SimpleNamespace(payload=payload)])


def test_it_waits_in_its_order_and_others_go_on() -> None:
    taken, cut = list[Any](), list[str]()
    held = HeldReports(taken.append, cut.append)
    ours = [batch("1") for _ in range(3)]
    held.take(ours[0])
    held.hold_owners({"1"})
    held.take(ours[1])
    theirs = batch("2")
    held.take(theirs)
    held.take(ours[2])
    assert taken == [ours[0], theirs]
    held.hold_owners({"2"})
    assert taken == [ours[0], theirs, *ours[1:]]
    assert (cut, held.forgotten) == ([], 0)


def test_beyond_a_bound_the_connection_ends_and_the_same_is_sent_again(monkeypatch: Any) -> None:
    for most, payload in (("_MOST", b"x"), ("_MOST_BYTES", b"x" * 100)):
        taken, cut = list[Any](), list[str]()
        with monkeypatch.context() as patch:
            patch.setattr(held_reports, most, 3 if most == "_MOST" else 350)
            held = HeldReports(taken.append, cut.append)
            held.hold_owners({"1"})
            other = batch("1", bridge="south")
            held.take(other)
            for _ in range(4):
                held.take(batch("1", payload))
            assert (cut, held.forgotten) == (["bridge:north"], 4)
            held.hold_owners(())
            assert taken == [other], "of which nothing was acknowledged"
