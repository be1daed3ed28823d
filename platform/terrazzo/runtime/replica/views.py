"""Live frames on a replica: what its follower has stored, as the leader tells what it has committed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from terrazzo.config.sections import Config
from terrazzo.domain.registry import Registry
from terrazzo.ingest.decoders import PayloadDecoders
from terrazzo.ingest.long_reports import json_of_long
from terrazzo.live.frame_sender import FrameSender
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.long_frames import LongFrames
from terrazzo.live.sources import RecordSource
from terrazzo.ports.tasks import OnFailure
from terrazzo.replication.follower import Follower
from terrazzo.runtime.lifetime import Lifetime


def start_replica_views(
    config: Config, lifetime: Lifetime, registry: Registry, follower: Follower, clock: Callable[[], int]
) -> LiveHub:
    """The live hub, fed by the follower, and the started task that sends its frames."""
    limits = config.limits
    kept = LiveLimits(
        frames=limits.live_frames, bytes=limits.live_bytes, feeds=limits.live_feeds, resume_s=limits.live_resume_s
    )
    live = LiveHub(registry, started_us=clock(), limits=kept)
    sender = FrameSender(live, lifetime.tasks)
    sender.start()
    lifetime.push_async_callback(sender.stop)
    decoders = PayloadDecoders()
    lifetime.push_async_callback(decoders.close)
    long = LongFrames(live, partial(json_of_long, decoders))
    lifetime.push_async_callback(lifetime.tasks.spawn("live reports", long.work, OnFailure.RESTART).stop)
    source = RecordSource(live, registry, zone=config.zone, long=long)

    def on_feeds() -> None:
        follower.records.set_listening(source.on_records, is_on=live.is_wanted)

    live.feed_changes.listen(on_feeds)
    lifetime.callback(lambda: follower.records.set_listening(source.on_records, is_on=False))
    return live
