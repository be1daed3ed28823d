"""Who may publish and subscribe where: deny by default."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.domain.topic_permission import CHANNELS, parse_topic_permission
from terrazzo.terminals.acl import TerminalAcl, covers


def terminal(uid: str, **changes) -> Terminal:
    base = Terminal(id=1, uid=uid, name=uid, company_id=1, type="Other", mode="pwd", username="u", pin="p")
    return msgspec.structs.replace(base, **changes)


def acl(registry: Registry | None = None, uid: str = "t1", **changes) -> TerminalAcl:
    registry = registry or Registry()
    record = terminal(uid, **changes)
    registry.put_terminal(record)
    return TerminalAcl(record, registry)


def published(rules: TerminalAcl, topic: str) -> str | None:
    report = rules.may_publish(topic)
    return report and report.topic


class TestTheTopicColumn:
    def test_all(self):
        permission = parse_topic_permission("all")
        assert permission.channels == set(CHANNELS)
        assert permission.own_reports

    @pytest.mark.parametrize(
        ("text", "channels", "filters"),
        [
            ("pub:r,a,v,p,i,n;sub:g/#", "ravpin", ("g/#",)),
            ("pub:r", "r", ()),
            ("sub:g/#", "", ("g/#",)),
            (" sub: g/+/a , g/x/# ; pub: r , a ", "ra", ("g/+/a", "g/x/#")),
        ],
    )
    def test_channels_and_filters(self, text, channels, filters):
        permission = parse_topic_permission(text)
        assert permission.channels == set(channels)
        assert permission.filters == filters
        assert not permission.own_reports

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("", "''"),
            ("everything", "'everything'"),
            ("all;pub:r", "'all'"),
            ("pub:", "''"),
            ("pub:r,x", "'x'"),
            ("pub:ra", "'ra'"),
            ("pub:r;pub:a", "'pub:a'"),
            ("pub:r;", "''"),
            ("sub:", "''"),
            ("sub:g/#/x", "'g/#/x'"),
            ("sub:g/a+", "'g/a\\+'"),
            ("sub:g/a,", "''"),
            ("sub:$share/x/g/#", "share"),
            ("pub;sub", "''"),
        ],
    )
    def test_what_is_wrong_is_named(self, text, part):
        with pytest.raises(ValueError, match=part):
            parse_topic_permission(text)


class TestPublishing:
    def test_its_own_channels_in_full_and_in_short(self):
        rules = acl()
        for channel in CHANNELS:
            assert published(rules, f"g/t1/{channel}") == f"g/t1/{channel}"
            assert published(rules, f"g/{channel}") == f"g/t1/{channel}"
            assert published(rules, f"g/t1/{channel}/deep/er") == f"g/t1/{channel}/deep/er"
            assert published(rules, f"g/{channel}/deep/er") == f"g/t1/{channel}/deep/er"

    @pytest.mark.parametrize(
        "topic",
        [
            "", "g", "g/", "g//r", "g/t1", "g/t1/", "g/t1/x", "g/x", "g/x/r", "G/t1/r", "/g/t1/r", "g/t1//r", "g/t2/r",
            "g/T1/r", "p2p/t1", "p2p/t2", "p2p", "$SYS/x", "$share/a/g/t1/r", "m/1", "x/t1", "g/t1/rr", "gg/t1/r",
            "g/r" + "/x" * 200,
        ],
    )  # fmt: skip
    def test_everything_else_is_refused(self, topic):
        registry = Registry()
        registry.put_terminal(terminal("t2"))
        assert acl(registry).may_publish(topic) is None

    def test_only_the_channels_that_its_topic_names(self):
        rules = acl(topic="pub:r,n;sub:g/#")
        assert published(rules, "g/r") == "g/t1/r"
        assert published(rules, "g/t1/n") == "g/t1/n"
        assert published(rules, "g/a") is None
        assert published(rules, "g/t1/a") is None
        assert published(acl(topic="sub:g/#"), "g/r") is None

    def test_access(self):
        assert published(acl(access="pub"), "g/r")
        assert published(acl(access="sub"), "g/r") is None

    def test_a_record_whose_topic_cannot_be_read_allows_nothing(self):
        rules = acl(topic="nonsense")
        assert published(rules, "g/r") is None
        assert not rules.may_subscribe("g/t1/r")

    def test_a_router_speaks_for_terminals_that_share_an_object_with_it(self):
        registry = Registry()
        for other in (terminal("t2"), terminal("t3"), terminal("off", is_available=False), terminal("x", company_id=2)):
            registry.put_terminal(other)
        registry.put_object(7, ["t1", "t2", "off", "x"])
        router, plain = acl(registry, is_route=True), acl(registry)
        report = router.may_publish("g/t2/r/deep")
        assert report is not None
        assert report.topic == "g/t2/r/deep"
        assert report.owner.uid == "t2"
        assert plain.may_publish("g/t2/r") is None
        for uid in ("t3", "off", "x", "unknown"):
            assert router.may_publish(f"g/{uid}/r") is None
        registry.drop_object(7)
        assert router.may_publish("g/t2/r") is None

    def test_a_terminal_whose_uid_reads_like_a_channel(self):
        registry = Registry()
        assert published(acl(registry, uid="r"), "g/r/a") == "g/r/a"
        assert published(acl(registry, uid="r"), "g/r") == "g/r/r"
        others = acl(registry, uid="t1")
        assert published(others, "g/r") == "g/t1/r"  # no channel follows: the short form
        assert published(others, "g/r/5") == "g/t1/r/5"
        assert published(others, "g/r/a") == "g/t1/r/a"  # though it is the other one's full form
        registry.put_object(7, ["t1", "r"])
        assert published(acl(registry, uid="t1", is_route=True), "g/r/a") == "g/t1/r/a"  # a router's own goes first


class TestSubscribing:
    def test_its_own_commands_and_reports(self):
        rules = acl()
        for topic_filter in ("p2p/t1", "g/t1/#", "g/t1/r", "g/t1/+/x", "$share/x/p2p/t1", "$share/x/g/t1/#"):
            assert rules.may_subscribe(topic_filter)

    @pytest.mark.parametrize(
        "topic_filter",
        ["#", "+/#", "g/#", "g/+/r", "g/t2/r", "p2p/#", "p2p/+", "p2p/t1/#", "p2p/t2", "$SYS/#", "+/t1", "p2p/t1/x",
         "$share/p2p/t1", "$share/x", "$share/x/#", "$share/x/p2p/t2", ""],
    )  # fmt: skip
    def test_nothing_of_others(self, topic_filter):
        assert not acl().may_subscribe(topic_filter)

    def test_what_its_topic_grants(self):
        rules = acl(topic="pub:r;sub:g/+/a,g/t2/#")
        for topic_filter in ("g/+/a", "g/t3/a", "g/t2/#", "g/t2/+/x", "$share/x/g/t2/r", "p2p/t1"):
            assert rules.may_subscribe(topic_filter)
        for topic_filter in ("g/#", "g/+/#", "g/t3/r", "g/t1/#", "#"):
            assert not rules.may_subscribe(topic_filter)

    def test_access(self):
        assert not acl(access="pub", topic="sub:g/#").may_subscribe("p2p/t1")
        assert not acl(access="pub", topic="sub:g/#").may_subscribe("g/t1/r")
        assert acl(access="sub", topic="sub:g/#").may_subscribe("g/#")

    def test_own_commands_however_its_topic_reads(self):
        assert acl(topic="pub:r").may_subscribe("p2p/t1")


def matches(topic_filter: str, topic: str) -> bool:
    """Straight from the specification, level by level [MQTT-4.7.1-2] [MQTT-4.7.1-3] [MQTT-4.7.2-1]."""
    if topic.startswith("$") and topic_filter[0] in "#+":
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted = wanted[:-1]
        levels = levels[: len(wanted)] if len(levels) >= len(wanted) else levels
    return len(wanted) == len(levels) and all(w in ("+", level) for w, level in zip(wanted, levels, strict=True))


filters = st.lists(st.sampled_from(["a", "b", "+", "", "$s"]), min_size=1, max_size=3).flatmap(
    lambda levels: st.sampled_from(["/".join(levels), "/".join([*levels[:-1], "#"])])
).filter(bool)  # fmt: skip
every_topic = [
    "/".join(levels) for n in range(1, 6) for levels in itertools.product(["a", "b", "c", "", "$s"], repeat=n)
]


@given(filters, filters)
@example("+/#", "#")
@example("#", "+/#")
@example("+/+/#", "#")
@example("a/#", "a")
@example("#", "$s/a")
@settings(max_examples=150, deadline=None)
def test_a_filter_is_covered_when_all_its_topics_are(granted, requested):
    asked = [topic for topic in every_topic if matches(requested, topic)]
    assert covers(granted, requested) == all(matches(granted, topic) for topic in asked)
