"""The accounts of memory: sums hold, nothing is negative, the largest owner gives up first and others never do."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from terrazzo.errors import Throttled
from terrazzo.memory_shares import Account, Cost, Kept, MemoryShares

MOST = 1_000_000
OWNERS = st.integers(0, 4)
KINDS = st.sampled_from(["ring", "queue", "report"])


class Place:
    """Where bytes of one kind lie."""

    def __init__(self, kind: str, *, gives: bool = True) -> None:
        self.kind = kind
        self.kept: Counter[int] = Counter()
        self.given: Counter[int] = Counter()
        self.gives = gives

    def give_up(self, owner: int, size: int) -> int:
        freed = min(size, self.kept[owner])
        self.kept[owner] -= freed
        self.given[owner] += freed
        return freed

    def account(self) -> Account:
        def read() -> dict[int, Kept]:
            return {owner: Kept(size) for owner, size in self.kept.items() if size}

        more = {"give_up": self.give_up} if self.gives else {}
        return Account(kind=self.kind, read=read, **more)


def shares_of(*places: Place) -> MemoryShares:
    shares = MemoryShares(MOST)
    for place in places:
        shares.add(place.account())
    return shares


class Machine(RuleBasedStateMachine):
    """Owners fill places, hold, let go; the ceiling is looked after now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.places = {kind: Place(kind, gives=kind != "report") for kind in ("ring", "queue", "report")}
        self.shares = shares_of(*self.places.values())
        self.holds: list[tuple[ExitStack, int, int]] = []

    @rule(kind=KINDS, owner=OWNERS, size=st.integers(1, MOST // 2))
    def fill(self, kind: str, owner: int, size: int) -> None:
        self.places[kind].kept[owner] += size

    @rule(kind=KINDS, owner=OWNERS)
    def empty(self, kind: str, owner: int) -> None:
        self.places[kind].kept[owner] = 0

    @rule(owner=OWNERS, size=st.integers(1, MOST))
    def hold(self, owner: int, size: int) -> None:
        stack, is_over = ExitStack(), self.shares.is_over(owner, size)
        try:
            stack.enter_context(self.shares.hold("body", owner, size))
        except Throttled:
            assert is_over
        else:
            assert not is_over
            self.holds.append((stack, owner, size))

    @rule()
    def let_go(self) -> None:
        if self.holds:
            self.holds.pop(0)[0].close()

    @rule()
    def look(self) -> None:
        counted = [place.kept + Counter() for place in self.places.values()]
        held = Counter[int]()
        for _, owner, size in self.holds:
            held[owner] += size
        has = sum([*counted, held], Counter[int]())
        given = {kind: Counter(place.given) for kind, place in self.places.items()}
        self.shares.look()
        gave = Counter[int]()
        for kind, place in self.places.items():
            gave += place.given - given[kind]
        assert not self.places["report"].given
        assert sum(has.values()) > MOST or not gave
        largest = max(has, key=has.__getitem__, default=0)
        if gave and any(
            kind != "report" and counts[largest] for kind, counts in zip(self.places, counted, strict=True)
        ):
            assert gave[largest], "the largest owner gives up first"
        for owner, size in has.items():
            if size <= MOST // 6:
                assert not gave[owner], "who has no more than its share gives up nothing"

    @invariant()
    def sums_hold(self) -> None:
        shares = self.shares
        assert shares.total_bytes >= 0
        assert shares.total_bytes == sum(size for _, size in shares.largest(100))
        assert shares.total_bytes == sum(shares.by_kind().values())
        assert all(size > 0 for _, size in shares.largest(100))


TestMachine = Machine.TestCase


def test_the_largest_owner_gives_up_first_and_what_is_cheapest() -> None:
    ring, queue, report = Place("ring"), Place("queue"), Place("report", gives=False)
    shares = shares_of(ring, queue, report)
    ring.kept.update({1: 300_000, 2: 150_000})
    queue.kept.update({1: 400_000, 2: 100_000})
    report.kept[1] = 150_000
    shares.look()
    assert ring.given == {1: 1_100_000 - (MOST - MOST // 64)}
    assert not queue.given
    assert shares.total_bytes <= MOST
    assert shares.stats.given_up == {"ring": 115_625}


def test_who_has_more_goes_on_with_what_is_dearer_to_lose_and_keeps_its_share() -> None:
    ring, queue = Place("ring"), Place("queue")
    shares = shares_of(ring, queue)
    ring.kept.update({1: 50_000, 2: 100_000})
    queue.kept.update({1: 2_000_000, 2: 200_000})
    shares.look()
    assert (ring.given[1], ring.given[2], queue.given[2]) == (50_000, 0, 0)
    assert dict(shares.largest(2))[1] >= MOST // 3
    assert shares.total_bytes <= MOST


def test_reports_are_never_given_up_and_no_other_gives_up_for_them() -> None:
    report, ring = Place("report", gives=False), Place("ring")
    shares = shares_of(ring, report)
    report.kept[1] = 5 * MOST
    ring.kept[2] = MOST // 10
    shares.look()
    assert not ring.given
    assert not report.given
    assert shares.over() == [1]


def test_past_its_share_an_owner_is_refused_only_while_others_need_it() -> None:
    shares = MemoryShares(MOST)
    with shares.hold("body", 1, 700_000):
        shares.check("body", 1, 50_000)  # nobody else needs it
        with pytest.raises(Throttled, match=r"memory: your company holds 1 MiB, .* \(limits\.memory_mib\)"):
            shares.check("body", 1, 100_000)
        with shares.hold("body", 2, 200_000):
            assert shares.is_over(1)
            assert not shares.is_over(2, 100_000)
        assert shares.stats.refused == {"body": 1}
    assert shares.total_bytes == 0
    assert not shares.by_kind()["body"]


def test_what_raises_inside_is_counted_off() -> None:
    shares = MemoryShares(MOST)
    with pytest.raises(ZeroDivisionError), shares.hold("answer", 1, 10):
        raise ZeroDivisionError
    assert shares.total_bytes == 0


def test_a_kind_costs_a_factor_and_something_for_each() -> None:
    assert Cost(1.5, 100).of(Kept(1_000, 3)) == 1_800
    assert Cost().of(Kept()) == 0


def test_it_is_told_when_it_gets_tight_and_who_has_it(caplog: pytest.LogCaptureFixture) -> None:
    ring, queue = Place("ring"), Place("queue")
    shares = shares_of(ring, queue)
    with caplog.at_level("INFO"):
        ring.kept.update({1: 400_000, 2: 100_000})
        shares.look()
        assert not caplog.records
        queue.kept[1] = 300_000
        shares.look()
        shares.look()
        queue.kept[1] = 0
        shares.look()
    tight, over = [record.getMessage() for record in caplog.records if "tight" in record.getMessage()]
    assert "limits.memory_mib" in tight
    assert tight.endswith("0.8 of 1 MiB: company 1 0.7, company 2 0.1; ring 0.5, queue 0.3")
    assert over.startswith("memory is not tight any more: 0.5 of 1 MiB")


def test_what_is_held_grows_and_ends() -> None:
    shares = MemoryShares(MOST)
    with shares.holding("page", 1) as page:
        page.grow(400_000)
        page.grow(300_000)
        with pytest.raises(Throttled):
            page.grow(300_000)
        assert shares.total_bytes == 700_000
        page.resize(900_000)  # it is there already
        assert shares.by_kind() == {"page": 900_000}
    assert shares.total_bytes == 0
