"""What ``/metrics`` says of each of its figures says something; durations are histograms; what runs is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from certificate_authority import Authority
from own_platform import own_platform
from platform_site import Peer, running_site
from terrazzo.durations import BOUNDS_S, Durations
from terrazzo.runtime.build_info import build_info

FEWEST_WORDS = 3


async def families(url: str) -> dict[str, Metric]:
    import aiohttp

    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics", ssl=False) as response:
        text = await response.text()
    return {family.name: family for family in text_string_to_metric_families(text)}


def complaint(name: str, text: str) -> str:
    """What is wrong with a text; empty where it says something."""
    own_words = set(re.findall(r"[a-z]+", name.removeprefix("terrazzo_").lower()))
    words = re.findall(r"[A-Za-z0-9_.]+", text)
    if not text[:1].isupper() and not text[:1].isdigit():
        return "begins with a small letter"
    if len(words) < FEWEST_WORDS:
        return f"has {len(words)} words"
    if {word.lower() for word in words} <= own_words:
        return "says its name once more"
    return ""


async def test_each_text_says_something(tmp_path: Path) -> None:
    pair = Authority(tmp_path / "authority").issue("server")
    http = {"tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    async with own_platform(tmp_path / "data", http=http) as (_, addresses):
        found = await families(addresses.http)
    own = {name: family for name, family in found.items() if name.startswith("terrazzo_")}
    assert len(own) > 150
    assert {name: why for name, each in own.items() if (why := complaint(name, each.documentation))} == {}
    texts = [each.documentation for each in own.values()]
    assert sorted({text for text in texts if texts.count(text) > 1}) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("messages", "begins with a small letter"),
        ("Ingest messages", "has 2 words"),
        ("Messages ingest total messages", "says its name once more"),
        ("Reports of terminals that are stored", ""),
        ("1 while it is up", ""),
    ],
)
def test_a_text_that_says_nothing_is_found(text: str, why: str) -> None:
    assert complaint("terrazzo_ingest_messages_total", text) == why


async def test_reports_commits_and_queries_are_timed(tmp_path: Path) -> None:
    async with running_site(tmp_path) as site:
        company = await site.company()
        await company.terminal("t1")
        peer = Peer(site, "t1")
        await peer.connect()
        for number in range(3):
            await peer.publish("g/r", b'{"v": %d}' % number)
        await peer.close()
        assert len(await site.grid("g/t1/r")) == 3
        stats = site.platform.messaging.ingest.stats
        assert sum(stats.waits.counts) == stats.messages == 3
        assert sum(stats.commit_times.counts) == stats.commits
        assert stats.commit_times.sum_s == pytest.approx(stats.commit_seconds)
        assert stats.waits.sum_s > 0
        times = site.store.stats().query_times
        assert sum(times["page"].counts) == 1
        pieces = [piece async for piece in site.store.scan(["g/t1/r"], 0, 2**62)]
        assert sum(times["scan"].counts) == len(pieces) + 1  # and the end


async def test_histograms_and_what_runs_are_shown(tmp_path: Path) -> None:
    async with own_platform(tmp_path) as (_, addresses):
        found = await families(addresses.http)
    for name in (
        "terrazzo_ingest_seconds",
        "terrazzo_commit_seconds",
        "terrazzo_query_seconds",
        "terrazzo_api_seconds",
    ):
        assert found[name].type == "histogram"
    assert {each.labels["query"] for each in found["terrazzo_query_seconds"].samples} >= {"page", "latest", "resample"}
    (sample,) = found["terrazzo_build_info"].samples
    assert (sample.labels, sample.value) == (build_info()._asdict(), 1)


def test_as_many_equal_durations_are_counted_at_once() -> None:
    one, many = Durations(), Durations()
    for _ in range(5):
        one.add(0.02)
    many.add(0.02, 5)
    assert (one.counts, one.sum_s) == (many.counts, pytest.approx(many.sum_s))
    assert many.cumulated()[-1] == ("+Inf", 5.0)
    assert len(many.counts) == len(BOUNDS_S) + 1
