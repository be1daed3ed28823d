"""Sessions and wills of the leader's own clients are those of all nodes: real processes, and clients by bytes."""

from __future__ import annotations

import signal
from pathlib import Path

import mqtt5
import pytest
from session_wire import Dial, dial
from test_stream_front_hearing import figure, stand, wait_sessions

from durability.test_acknowledged_is_stored import stored_numbers
from nats_servers import NatsServer, running_nats
from postgresql_server import PostgreSQL
from running import Platform, wait_for

__all__ = ["dial"]

TAKEN_OVER = mqtt5.DisconnectReasonCode.SESSION_TAKEN_OVER


def wait_noted(at: Platform) -> None:
    """Waits until the log has what a node's clients have acknowledged: of the last moment before it dies, or before a
    client goes elsewhere while the log is slow, messages at QoS 1 come again."""
    wait_for(lambda: figure(at, "terrazzo_sessions_waiting_messages") == 0, "it is noted", timeout_s=60)


@pytest.mark.timeout(500)
def test_a_session_goes_from_the_leader_to_a_front_and_back_and_outlives_both(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer, dial: Dial
) -> None:
    with stand(tmp_path, postgresql, nats_server, "leader-sessions") as found:
        leader, other = found.leader, found.cluster.node("b")
        for uid in ("ls-h", "ls-w", "ls-l", "ls-t", "ls-u"):
            leader.add_terminal(uid, found.config, topic="pub:r,a,v,p,i,n;sub:g/#")
        front = found.cluster.front("f1")
        telling, at_leader, watching = dial(front, "ls-t"), dial(leader, "ls-u"), dial(front, "ls-l")
        watching.subscribe("g/+/r", 1)
        first = dial(leader, "ls-h")
        assert not first.present
        first.subscribe("g/+/a", 1)
        for at in (leader, front):
            wait_sessions(at, 4, 2)
        assert telling.tell("g/ls-t/a", b'{"n":0}') == 0
        assert first.hear(1) == [b'{"n":0}']
        wait_noted(leader)

        second = dial(front, "ls-h")
        assert second.present
        (said,) = first.rest()
        assert isinstance(said, mqtt5.DisconnectPacket)
        assert said.reason_code == TAKEN_OVER
        assert at_leader.tell("g/ls-u/a", b'{"n":1}') == 0
        assert second.hear(1) == [b'{"n":1}']
        wait_noted(front)
        third = dial(leader, "ls-h")
        assert third.present
        (said,) = second.rest()
        assert isinstance(said, mqtt5.DisconnectPacket)
        assert said.reason_code == TAKEN_OVER
        third.end()
        assert telling.tell("g/ls-t/a", b'{"n":2}') == 0
        assert at_leader.tell("g/ls-u/a", b'{"n":3}') == 0
        fourth = dial(leader, "ls-h")
        assert sorted(fourth.hear(2)) == [b'{"n":2}', b'{"n":3}'], "order holds for what one node publishes"
        fourth.silence()
        dying = dial(leader, "ls-w", will=b'{"n":98}')
        dying.end()
        assert watching.hear(1) == [b'{"n":98}']
        wait_for(lambda: stored_numbers(leader, "ls-w") == [98], "the will is stored", timeout_s=60)

        wait_noted(leader)
        dial(leader, "ls-w", will=b'{"n":99}')
        leader.kill()
        assert telling.tell("g/ls-t/a", b'{"n":4}') == 0
        assert watching.hear(1) == [b'{"n":99}'], "the will of a client of a leader that was killed"
        found.leader = other.wait_leading()
        other.login()
        last = dial(other, "ls-h")
        assert last.present
        assert last.hear(1) == [b'{"n":4}']
        last.silence()
        assert telling.tell("g/ls-t/r", b'{"n":5}') == 0
        assert watching.hear(1) == [b'{"n":5}'], "no will comes a second time"
        wait_for(lambda: stored_numbers(other, "ls-w") == [99, 98], "wills are stored, once", timeout_s=60)
        other.call("delete_terminal", uid="ls-h")
        wait_for(lambda: figure(front, "terrazzo_sessions_known") == 4, "a deleted terminal's is ended", timeout_s=60)


@pytest.mark.timeout(400)
def test_where_the_log_takes_too_little_sessions_stay_with_their_node_until_it_takes_more(
    tmp_path: Path, postgresql: PostgreSQL, dial: Dial
) -> None:
    name = "leader-alone"
    with (
        running_nats(tmp_path / "nats", payload="1MB") as (server,),
        stand(tmp_path, postgresql, server, name) as found,
    ):
        leader = found.leader
        for uid in ("la-h", "la-t"):
            leader.add_terminal(uid, found.config, topic="pub:r;sub:g/#")
        dial(leader, "la-h").subscribe("g/+/r", 1)
        assert "sessions of terminals at this node are kept by it alone: stream.url: the servers' max_payload" in (
            leader.log.read_text()
        )
        leader.kill()
        leader = found.cluster.node("a").wait_leading()
        telling = dial(leader, "la-t")
        assert telling.tell("g/la-t/r", b'{"n":1}') == 0
        assert figure(leader, "terrazzo_sessions_known") == 0

        leader.kill()
        server.kill()
        server.configure([])
        server.start()
        server.wait()
        leader = found.cluster.node("a").wait_leading()
        wait_sessions(leader, 2, 1)
        again = dial(leader, "la-h")
        assert again.present
        assert again.hear(1) == [b'{"n":1}']
        again.silence()


@pytest.mark.timeout(400)
def test_a_leader_that_stood_still_and_leads_on_ends_what_is_elsewhere_by_then(
    tmp_path: Path, postgresql: PostgreSQL, nats_server: NatsServer, dial: Dial
) -> None:
    with stand(tmp_path, postgresql, nats_server, "leader-still") as found:
        leader = found.leader
        for uid in ("lq-h", "lq-t"):
            leader.add_terminal(uid, found.config, topic="pub:r;sub:g/#")
        front = found.cluster.front("f1")
        telling = dial(front, "lq-t")
        first = dial(leader, "lq-h")
        first.subscribe("g/+/r", 1)
        wait_sessions(front, 2, 1)
        leader.process.send_signal(signal.SIGSTOP)
        second = dial(front, "lq-h", timeout_s=120)  # once the lease is over, which nobody takes
        assert second.present
        assert telling.tell("g/lq-t/r", b'{"n":1}') == 0
        assert second.hear(1) == [b'{"n":1}']
        leader.process.send_signal(signal.SIGCONT)
        said = first.rest()
        assert all(isinstance(each, mqtt5.DisconnectPacket) for each in said), said
        assert telling.tell("g/lq-t/r", b'{"n":2}') == 0
        assert second.hear(1) == [b'{"n":2}']
        second.silence()
        wait_noted(front)
        third = dial(leader, "lq-h")
        assert third.present
        third.silence()
        assert telling.tell("g/lq-t/r", b'{"n":3}') == 0
        assert third.hear(1) == [b'{"n":3}']
        wait_for(lambda: stored_numbers(leader, "lq-t") == [3, 2, 1], "it leads on", timeout_s=60)
