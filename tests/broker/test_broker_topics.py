"""Topic names and filters, against a matcher written another way."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo_broker import BrokerSettings, Stats
from terrazzo_broker.delivery.routing import merging
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.scheduling.turns import finish
from terrazzo_broker.topics.names import Shared, is_topic_filter, is_topic_name, matches, split_shared
from terrazzo_broker.topics.retained import RetainedMessages
from terrazzo_broker.topics.retained_quota import NO_LIMIT, RetainedLimits, RetainedSize
from terrazzo_broker.topics.tree import SubscriptionTree, TopicSubscription

levels = st.sampled_from(["", "a", "b", "c", "$SYS", "é"])
names = st.lists(levels, min_size=1, max_size=4).map("/".join).filter(bool)
filters = (
    st.tuples(st.lists(levels | st.just("+"), min_size=1, max_size=4), st.sampled_from(["", "/#"]))
    .map(lambda pair: "/".join(pair[0]) + pair[1])
    .filter(bool)
) | st.just("#")


def oracle(pattern: str, topic: str) -> bool:
    """The same by regular expression."""
    if topic[0] == "$" and pattern[0] in "+#":
        return False
    expression = "/".join("[^/]*" if level == "+" else re.escape(level) for level in pattern.split("/"))
    if pattern == "#":
        expression = ".*"
    elif pattern.endswith("/#"):
        expression = expression[: -len("/\\#")] + "(/.*)?"
    return re.fullmatch(expression, topic, re.DOTALL) is not None


def session(name: str) -> Session:
    """A session that is never connected."""
    return Session(name, BrokerSettings(), Stats())


@given(filters, names)
def test_matching(pattern, topic):
    assert matches(pattern, topic) == oracle(pattern, topic)


@given(st.lists(st.tuples(filters, st.integers(0, 3), st.booleans()), max_size=20), names)
def test_the_tree_finds_what_matches(changes, topic):
    tree, sessions = SubscriptionTree(), [session(str(number)) for number in range(4)]
    expected: set[tuple[str, int]] = set()
    for pattern, number, adds in changes:
        epoch = tree.epoch
        if adds:
            tree.add(pattern, None, sessions[number], TopicSubscription(pattern, 0))
            expected.add((pattern, number))
            assert tree.epoch > epoch
        else:
            tree.remove(pattern, None, sessions[number])
            expected.discard((pattern, number))
    found = [each for each in tree.matching(topic, "") if each is not None]
    assert sorted((each.filter, int(who.client_id)) for who, each in found) == sorted(
        (pattern, number) for pattern, number in expected if oracle(pattern, topic)
    )
    assert tree.count == len(expected)
    for pattern, number in expected:
        tree.remove(pattern, None, sessions[number])
    assert tree.of("").root.is_empty


@given(st.lists(st.tuples(names, st.sampled_from([b"x", b""])), max_size=20), filters)
def test_retained_messages_are_found(puts, pattern):
    retained, expected = RetainedMessages(), {}
    for topic, payload in puts:
        assert not retained.put(topic, ApplicationMessage(topic.encode(), payload))
        expected.pop(topic, None)
        if payload:
            expected[topic] = payload
    assert retained.count == len(expected)
    topics = sorted(each.topic.decode() for each in retained.walk(pattern) if each is not None)
    assert topics == sorted(topic for topic in expected if oracle(pattern, topic))


def test_retained_messages_expire_and_are_bounded():
    retained = RetainedMessages()
    retained.ledger.limits = RetainedLimits(broker=RetainedSize(2, NO_LIMIT, NO_LIMIT))
    assert not retained.put("a", ApplicationMessage(b"a", b"x", expires_us=10))
    assert not retained.put("b", ApplicationMessage(b"b", b"x"))
    assert retained.put("c", ApplicationMessage(b"c", b"x")) == "too many retained messages"
    assert not retained.put("b", ApplicationMessage(b"b", b"y"))
    assert len(found(retained, 9)) == 2
    assert len(found(retained, 10)) == retained.count == 1
    assert not retained.put("c", ApplicationMessage(b"c", b"x"))


def found(retained: RetainedMessages, now_us: int) -> list:
    messages = [each for each in retained.walk("#") if each is not None]
    return [each for each in messages if retained.whole(each, now_us) is not None]


@pytest.mark.parametrize("pattern", ["#", "+", "a/+/b", "/", "a/#", "+/+", "$share/g/a", " "])
def test_valid_filters(pattern):
    assert is_topic_filter(pattern, levels=8)


@pytest.mark.parametrize("pattern", ["", "a#", "#/a", "a+", "+a/b", "a/#/b", "a/b#", "1/2/3/4/5/6/7/8/9"])
def test_invalid_filters(pattern):
    assert not is_topic_filter(pattern, levels=8)


def test_names_have_no_wildcards():
    assert [is_topic_name(name) for name in ("a", "/", "a b", "", "a/#", "+")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a/b", Shared(None, "a/b")),
        ("$share/g/a/b", Shared("g", "a/b")),
        ("$share/g//", Shared("g", "/")),
        ("$shared/g/a", Shared(None, "$shared/g/a")),
        ("$share", None),
        ("$share/g", None),
        ("$share/g/", None),
        ("$share//a", None),
        ("$share/+/a", None),
    ],
)
def test_shared_filters_are_taken_apart(pattern, expected):
    assert split_shared(pattern) == expected


def test_overlapping_subscriptions_become_one_target():
    who = session("c")
    targets = finish(
        merging(
            [
                (who, TopicSubscription("a/#", 0, identifier=3)),
                (who, TopicSubscription("a/+", 2, retain_as_published=True, identifier=200)),
                (who, TopicSubscription("+/b", 1)),
            ],
            "someone",
        )
    )
    assert [each.options for each in targets] == [(2, True, b"\x0b\x03\x0b\xc8\x01")]
    assert finish(merging([(who, TopicSubscription("a", 1, no_local=True))], "c")) == []


def test_shared_messages_go_round():
    tree = SubscriptionTree()
    members = [session(str(number)) for number in range(3)]
    for member in members:
        tree.add("a", "g", member, TopicSubscription("$share/g/a", 1))
    (group,) = [each for each in tree.matching("a", "") if each is not None]
    picked = [group.pick()[0] for _ in range(6)]
    assert sorted(each.client_id for each in picked) == ["0", "0", "1", "1", "2", "2"]
    for member in members:
        tree.remove("a", "g", member)
    assert not [each for each in tree.matching("a", "") if each is not None]
