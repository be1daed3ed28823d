"""The tables of QoS 1 and 2: every state with every acknowledgement."""

from __future__ import annotations

import pytest

from terrazzo_broker import BrokerSettings, Stats
from terrazzo_broker.codec.writer import PUBACK, PUBCOMP, PUBREC, PUBREL
from terrazzo_broker.delivery.encoder import plain_encoder
from terrazzo_broker.delivery.qos import RECEIVER, Received, ReceiverStep, SenderStep, Sent, steps_of
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.message import ApplicationMessage

REFUSAL = 0x97


def session_in(state: Sent) -> Session:
    """A session whose identifier 1 is in this state."""
    session = Session("client", BrokerSettings(), Stats())
    session.open(10)
    if state is not Sent.FREE:
        message = ApplicationMessage(b"a", b"", 1 if state is Sent.PUBACK_DUE else 2)
        session.send(message, plain_encoder(5), [], 0, None)
    if state is Sent.PUBCOMP_DUE:
        session.acknowledge(steps_of(PUBREC), [1])
    return session


def state_of(session: Session) -> Sent:
    if 1 not in session.inflight:
        return Sent.FREE
    message = session.inflight[1]
    return Sent.PUBCOMP_DUE if message is None else Sent(message.qos)


FREE, PUBACK_DUE, PUBREC_DUE, PUBCOMP_DUE = Sent
AFTER = {  # [MQTT-4.3.2] [MQTT-4.3.3]: the state afterwards; None: a protocol error
    (PUBACK, 0): (FREE, FREE, None, None),
    (PUBREC, 0): (FREE, None, PUBCOMP_DUE, PUBCOMP_DUE),
    (PUBREC, REFUSAL): (FREE, None, FREE, FREE),
    (PUBCOMP, 0): (FREE, None, None, FREE),
}


@pytest.mark.parametrize("state", Sent)
@pytest.mark.parametrize(("kind", "reason"), AFTER)
def test_acknowledgements_from_the_client(state, kind, reason):
    session = session_in(state)
    not_found, wrong = session.acknowledge(steps_of(kind, reason), [1], reason)
    expected = AFTER[kind, reason][state]
    assert (wrong == 1) is (expected is None)
    assert state_of(session) is (state if expected is None else expected)
    assert (not_found == {1}) is (state is FREE and (kind, reason) == (PUBREC, 0))
    assert session.quota == 10 - len(session.inflight)


def test_those_before_a_wrong_one_count():
    session = session_in(Sent.FREE)
    for qos in (1, 2, 1):
        session.send(ApplicationMessage(b"a", b"", qos), plain_encoder(5), [], 0, None)
    assert session.acknowledge(steps_of(PUBACK), [1, 2, 3]) == (set(), 2)
    assert list(session.inflight) == [2, 3]


@pytest.mark.parametrize("state", Received)
def test_publishes_from_the_client(state):
    session = Session("client", BrokerSettings(), Stats())
    if state is not Received.NEW:
        session.receive(1, None if state is Received.TAKEN else object())
    assert session.received(1) is state
    assert RECEIVER[PUBREL][state] is (ReceiverStep.NOT_FOUND if state is Received.NEW else ReceiverStep.PUBCOMP)
    session.release(1)
    assert session.received(1) is Received.NEW


def test_each_step_is_used():
    assert {step for kind, reason in AFTER for step in steps_of(kind, reason)} == set(SenderStep)
    assert {answer for row in RECEIVER.values() for answer in row} == set(ReceiverStep)
