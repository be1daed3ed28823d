"""Open commands: strictly in order per terminal, each ends once."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from terrazzo.commands.queue import CommandQueues, OpenCommand
from terrazzo.domain.command import CommandState
from terrazzo.ports.bus import DeliveryFate

TERMINALS = ["t1", "t2"]


def command(number: int, terminal_id: str = "t1", expires_us: int = 100) -> OpenCommand:
    return OpenCommand(
        uid=str(number), terminal_id=terminal_id, company_id=1, payload=b"", queued_us=0, expires_us=expires_us
    )


def test_the_next_goes_out_when_the_one_before_it_has_ended():
    queues, first, second = CommandQueues(), command(1), command(2)
    queues.put(first)
    queues.put(second)
    assert queues.next("t1") is first
    first.in_flight = True
    assert queues.next("t1") is None
    assert queues.on_fate(first, DeliveryFate.DELIVERED, 5).state is CommandState.DELIVERED
    assert queues.next("t1") is second
    assert queues.on_fate(second, DeliveryFate.REFUSED, 6).state is CommandState.FAILED
    assert queues.next("t1") is None
    assert len(queues) == 0


def test_a_lost_command_waits_again_at_the_head():
    queues, first, second = CommandQueues(), command(1), command(2)
    queues.put(first)
    queues.put(second)
    first.in_flight = True
    assert queues.on_fate(first, DeliveryFate.LOST, 5).state is CommandState.QUEUED
    assert queues.next("t1") is None  # an answer may be on its way
    assert queues.is_doubtful("t1")
    queues.trust("t1")
    assert queues.next("t1") is first


def test_an_answer_after_the_loss_ends_it():
    queues = CommandQueues()
    queues.put(first := command(1))
    first.in_flight = True
    queues.on_fate(first, DeliveryFate.LOST, 5)
    queues.on_answer("t1", "1")
    assert len(queues) == 0


def test_only_what_was_certainly_not_sent_is_recalled():
    queues, sent, waiting = CommandQueues(), command(1), command(2)
    queues.put(sent)
    queues.put(waiting)
    sent.in_flight = True
    assert queues.recall("t1", "1", "paused", 5) is None
    assert queues.recall("t2", "2", "paused", 5) is None
    change = queues.recall("t1", "2", "paused", 5)
    assert change is not None
    assert (change.state, change.reason) == (CommandState.FAILED, "paused")
    assert queues.depth("t1") == 1
    sent.in_flight, sent.is_doubtful = False, True
    assert queues.recall("t1", "1", "paused", 5) is None


def test_expiry_says_whether_it_was_sent():
    queues, sent, waiting, later = CommandQueues(), command(1), command(2), command(3, expires_us=200)
    for each in (sent, waiting, later):
        queues.put(each)
    sent.in_flight = True
    assert [(each.uid, "sent" in each.reason) for _, each in queues.expire(100, 9)] == [("1", True), ("2", False)]
    assert queues.next("t1") is later
    assert len(queues) == 1


def test_a_deleted_terminals_commands_fail():
    queues = CommandQueues()
    queues.put(command(1))
    queues.put(command(2, "t2"))
    assert [change.uid for change in queues.fail("t1", "deleted", 5)] == ["1"]
    assert queues.waiting() == ["t2"]
    assert len(queues) == 1
    assert [change.uid for _, change in queues.expire(1_000, 9)] == ["2"], "what failed is not there to expire"


def test_all_that_wait_come_some_at_a_time_and_then_again():
    queues = CommandQueues()
    for number in range(7):
        queues.put(command(number, f"t{number}"))
    rounds = [queues.some_waiting(3) for _ in range(6)]
    assert [len(each) for each in rounds] == [3, 3, 1] * 2
    for three in (rounds[:3], rounds[3:]):
        assert sorted(each for some in three for each in some) == [f"t{number}" for number in range(7)]


def test_those_of_one_second_expire_each_at_its_time():
    queues = CommandQueues()
    for number in range(10):
        queues.put(command(number, f"t{number}", expires_us=1_000_000 + number))
    assert queues.expire(999_999, 99) == []
    assert [change.uid for _, change in queues.expire(1_000_004, 2)] == ["0", "1"]
    assert [change.uid for _, change in queues.expire(1_000_004, 9)] == ["2", "3", "4"]
    assert queues.expire(1_000_004, 9) == []
    assert len(queues.expire(2_000_000, 9)) == 5


def test_an_answer_ends_what_is_on_its_way():
    queues, first, second = CommandQueues(), command(1), command(2)
    queues.put(first)
    queues.put(second)
    queues.on_answer("t1", "1")  # not sent yet: somebody guesses
    assert queues.next("t1") is first
    first.in_flight = True
    queues.on_answer("t2", "1")  # another terminal's
    assert queues.next("t1") is None
    queues.on_answer("t1", "1")
    assert queues.next("t1") is second


class Queues(RuleBasedStateMachine):
    """Against a list per terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.queues, self.model, self.count = CommandQueues(), {uid: [] for uid in TERMINALS}, 0

    @rule(uid=st.sampled_from(TERMINALS), expires_us=st.integers(1, 9))
    def put(self, uid, expires_us):
        self.count += 1
        self.model[uid].append(command(self.count, uid, expires_us))
        self.queues.put(self.model[uid][-1])

    @rule(uid=st.sampled_from(TERMINALS))
    def send(self, uid):
        if (following := self.queues.next(uid)) is not None:
            following.in_flight = True

    @rule(uid=st.sampled_from(TERMINALS), fate=st.sampled_from(DeliveryFate))
    def end(self, uid, fate):
        if self.model[uid] and self.model[uid][0].in_flight:
            self.queues.on_fate(self.model[uid][0], fate, 1)
            if fate is not DeliveryFate.LOST:
                self.model[uid].pop(0)

    @rule(uid=st.sampled_from(TERMINALS))
    def trust(self, uid):
        self.queues.trust(uid)

    def _expired(self, now_us):
        """Two at a time, until there are no more."""
        while some := self.queues.expire(now_us, 2):
            assert len(some) <= 2
            yield from (change for _, change in some)

    @rule(now_us=st.integers(0, 10))
    def expire(self, now_us):
        ended = {change.uid for change in self._expired(now_us)}
        assert ended == {each.uid for queue in self.model.values() for each in queue if each.expires_us <= now_us}
        for queue in self.model.values():
            queue[:] = [each for each in queue if each.expires_us > now_us]

    @invariant()
    def they_are_counted(self):
        assert len(self.queues) == sum(map(len, self.model.values()))

    @invariant()
    def the_head_is_next_unless_it_is_on_its_way(self):
        for uid, queue in self.model.items():
            expected = queue[0] if queue and not (queue[0].in_flight or queue[0].is_doubtful) else None
            assert self.queues.next(uid) is expected
            assert self.queues.depth(uid) == len(queue)
            assert sum(each.in_flight for each in queue) <= 1


TestQueues = Queues.TestCase
