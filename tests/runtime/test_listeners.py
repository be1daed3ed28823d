"""One listener that raises doesn't keep the news from the others."""

from __future__ import annotations

import pytest

from terrazzo.listeners import Listeners


def test_the_next_ones_are_told_too(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []

    def broken(_number: int) -> None:
        raise RuntimeError("planted")

    listeners: Listeners[[int]] = Listeners("numbers")
    listeners.listen(heard.append)
    listeners.listen(broken)
    listeners.listen(heard.append)
    for number in range(3):
        listeners.tell(number)
    assert heard == [0, 0, 1, 1, 2, 2]
    assert listeners.failures == 3
    assert caplog.text.count("numbers: ") == 1  # at most one line in ten seconds
    assert "broken failed: RuntimeError: planted" in caplog.text


def test_whether_anybody_listens() -> None:
    listeners: Listeners[[]] = Listeners("nothing")
    assert not listeners
    listeners.listen(lambda: None)
    assert listeners


def test_a_listener_that_is_switched_off_and_on() -> None:
    heard: list[str] = []
    listeners: Listeners[[]] = Listeners("switched")

    def first() -> None:
        heard.append("first")

    def second() -> None:
        heard.append("second")

    def off() -> bool:
        return False

    listeners.set_listening(second, is_on=False)  # it doesn't listen: nothing changes
    listeners.listen(first, wanted=off)
    for _ in range(2):
        listeners.set_listening(second, is_on=True)
    listeners.tell()
    assert heard == ["first", "second"]  # once, after what was there before
    assert listeners.are_wanted
    for _ in range(2):
        listeners.set_listening(second, is_on=False)
    listeners.tell()
    assert heard == ["first", "second", "first"]
    assert not listeners.are_wanted  # the first one's word is still its own
