"""Which messages go when the spool is full: against a list that does the same slowly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from terrazzo_adapters.bridge.queue_index import Capacity, QueueIndex

OFFERS = st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(1, 40)), max_size=60)


def numbers(index: QueueIndex) -> list[int]:
    return [number for number in range(1, index.last + 1) if number in index]


def admit_slowly(
    waiting: list[tuple[int, int, int]], capacity: Capacity, offer: tuple[int, int, int]
) -> tuple[bool, list[int]]:
    """``waiting`` and ``offer``: number, QoS, size."""
    dropped: list[int] = []
    if offer[2] > capacity.bytes:
        return False, dropped
    while len(waiting) >= capacity.messages or sum(size for _, _, size in waiting) + offer[2] > capacity.bytes:
        victims = [each for each in waiting if each[1] == 0]
        if not victims and offer[1] and capacity.overflow == "drop_oldest":
            victims = waiting
        if not victims:
            return False, dropped
        dropped.append(victims[0][0])
        waiting.remove(victims[0])
    waiting.append(offer)
    return True, dropped


@given(st.integers(1, 8), st.integers(10, 120), st.sampled_from(["drop_oldest", "drop_newest"]), OFFERS)
def test_admission_follows_the_policy(most, most_bytes, overflow, offers) -> None:
    capacity = Capacity(most, most_bytes, overflow)
    index, waiting = QueueIndex(capacity), []
    for qos, size in offers:
        entered, dropped = admit_slowly(waiting, capacity, (index.last + 1, qos, size))
        number, gone = index.admit(qos=qos, size=size)
        assert (number is not None, gone) == (entered, dropped)
        assert numbers(index) == [each[0] for each in waiting]
        assert (len(index), index.bytes) == (len(waiting), sum(each[2] for each in waiting))
        assert len(index) <= most
        assert index.bytes <= most_bytes


def test_the_oldest_qos_0_goes_before_older_qos_1() -> None:
    index = QueueIndex(Capacity(3, 1_000, "drop_oldest"))
    for qos in (1, 0, 1):
        index.admit(qos=qos, size=1)
    assert index.admit(qos=1, size=1) == (4, [2])
    assert index.admit(qos=1, size=1) == (5, [1])
    assert index.admit(qos=0, size=1) == (None, [])
    assert numbers(index) == [3, 4, 5]


def test_what_is_on_the_way_is_not_dropped() -> None:
    index = QueueIndex(Capacity(3, 1_000, "drop_oldest"))
    for _ in range(3):
        index.admit(qos=1, size=1)
    index.on_the_way = 2
    assert index.admit(qos=1, size=1) == (4, [3])
    index.remove(1)
    assert index.first == 2
