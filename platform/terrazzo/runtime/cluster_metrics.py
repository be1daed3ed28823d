"""The figures of a node among several, and their names in ``/metrics``; one process has none of them."""

from __future__ import annotations

import msgspec

from terrazzo.runtime.assembly.metric_names import Figure


class ClusterFigures(msgspec.Struct):
    """How a node is, read when it is asked."""

    leads: int = 0
    epoch: int = 0
    sequence: int = 0
    lag: int = 0
    log_first: int = 0
    log_bytes: int = 0
    log_limit: int = 0
    connected: int = 0
    connects: int = 0
    disconnects: int = 0
    requests: int = 0
    failures: int = 0
    published: int = 0
    published_bytes: int = 0
    stale: int = 0
    read: int = 0
    readers: int = 0
    follower_operations: int = 0
    follower_refused: int = 0
    follower_failures: int = 0
    leader_operations: int = 0
    settled: int = 0
    again: int = 0
    store_again: int = 0
    full: int = 0
    is_verified: int = 0


STREAM = {
    "terrazzo_stream_connected": Figure("connected", "1 while there is a connection to a server of the log"),
    "terrazzo_stream_connects_total": Figure("connects", "Connections to servers of the log that were made"),
    "terrazzo_stream_disconnects_total": Figure("disconnects", "Connections to servers of the log that were lost"),
    "terrazzo_stream_requests_total": Figure("requests", "Requests to the servers of the log"),
    "terrazzo_stream_failures_total": Figure("failures", "Requests that the servers of the log did not serve"),
    "terrazzo_stream_published_total": Figure("published", "Frames that the log has acknowledged to this node"),
    "terrazzo_stream_published_bytes_total": Figure("published_bytes", "Bytes of frames that the log has acknowledged"),
    "terrazzo_stream_stale_total": Figure("stale", "Frames that the log refused because another frame was there"),
    "terrazzo_stream_read_total": Figure("read", "Frames that this node has read from the log"),
    "terrazzo_stream_readers_total": Figure("readers", "Times that reading from the log began anew"),
}

CLUSTER = {
    "terrazzo_cluster_leads": Figure("leads", "1 on the node that serves, 0 on one that stands by"),
    "terrazzo_cluster_epoch": Figure("epoch", "Epoch of the newest change of the log that this node has"),
    "terrazzo_cluster_sequence": Figure("sequence", "Number of the newest frame of the log that this node's store has"),
    "terrazzo_cluster_lag_frames": Figure("lag", "Frames of the log that this node's store doesn't have yet"),
    "terrazzo_cluster_log_first": Figure("log_first", "Number of the oldest frame that the log has"),
    "terrazzo_cluster_log_bytes": Figure("log_bytes", "Bytes of the log on each of its servers"),
    "terrazzo_cluster_log_limit_bytes": Figure("log_limit", "Bytes that the log may have; full, it takes nothing"),
    "terrazzo_cluster_log_synced": Figure("is_verified", "1 if it is verified that the log syncs what it acknowledges"),
    **STREAM,
    "terrazzo_follower_operations_total": Figure("follower_operations", "Changes that the store took from the log"),
    "terrazzo_follower_refused_total": Figure("follower_refused", "Changes of the log that no node's store takes"),
    "terrazzo_follower_failures_total": Figure(
        "follower_failures", "Times that the log or the store did not answer while following"
    ),
    "terrazzo_leader_operations_total": Figure("leader_operations", "Changes that this node has put into the log"),
    "terrazzo_leader_settled_total": Figure(
        "settled", "Frames whose acknowledgement was lost and that were found in the log"
    ),
    "terrazzo_leader_again_total": Figure("again", "Frames sent to the log again because there was no answer"),
    "terrazzo_leader_store_again_total": Figure(
        "store_again", "Changes that are in the log and that the store of this node did not take at once"
    ),
    "terrazzo_leader_full_total": Figure("full", "Changes for which the log had no room"),
}

READS = {
    "terrazzo_replica_serves": Figure("serves", "1 while this node answers reads, though it doesn't lead"),
    "terrazzo_replica_age_seconds": Figure(
        "age_s", "All that was acknowledged so many seconds ago is in this node's store; -1: not known"
    ),
    "terrazzo_replica_asked_total": Figure("asked", "Reads that the leader was asked for"),
    "terrazzo_replica_unanswered_total": Figure("unanswered", "Reads that the leader did not answer"),
    "terrazzo_replica_waited_total": Figure("waited", "Reads that waited until this node had what they asked for"),
    "terrazzo_replica_behind_total": Figure("behind", "Reads that were refused as this node did not have it in time"),
}

FRONTS = {
    "terrazzo_fronts_sequence": Figure("sequence", "Number of the frame of fronts up to which all are stored"),
    "terrazzo_fronts_frames_total": Figure("frames", "Frames of fronts that this leader has read"),
    "terrazzo_fronts_messages_total": Figure("messages", "Reports in these that it had to store"),
    "terrazzo_fronts_repeated_total": Figure("repeated", "Frames of fronts that were in the log twice"),
    "terrazzo_fronts_open_frames": Figure("open", "Frames of fronts that are read and not stored yet"),
    "terrazzo_fronts_open_bytes": Figure("open_bytes", "Bytes of these"),
    "terrazzo_fronts_failures_total": Figure("failures", "Times that the log of what fronts take did not answer"),
}

FRONT_TERMINALS = {
    "terrazzo_fronts_terminals": Figure("connected", "Terminals that are connected to fronts, as this leader knows"),
    "terrazzo_fronts_sent_total": Figure("sent", "Messages to terminals that fronts have written to their sockets"),
    "terrazzo_fronts_absent_total": Figure("absent", "Messages to terminals that were not at their front any more"),
    "terrazzo_fronts_unanswered_total": Figure(
        "unanswered", "Messages of which no front has said in time whether they were sent"
    ),
}

PEERS = {
    "terrazzo_peers_nodes": Figure("nodes", "Other nodes that terminals connect to, as this one knows"),
    "terrazzo_peers_filters": Figure("filters", "Topic filters of clients at other nodes, by node and company"),
    "terrazzo_peers_frames_total": Figure("frames", "Frames that other nodes have taken"),
    "terrazzo_peers_sent_total": Figure("sent", "Messages in these, for clients there"),
    "terrazzo_peers_received_total": Figure("received", "Messages from other nodes for clients here"),
    "terrazzo_peers_unheard_total": Figure("unheard", "Messages from other nodes for which nobody was here any more"),
    "terrazzo_peers_again_total": Figure("again", "Attempts to tell a node that had no answer, or found no room"),
    "terrazzo_peers_anew_total": Figure("anew", "Times that a node was told all topic filters of clients here"),
    "terrazzo_peers_waiting_bytes": Figure("waiting_bytes", "Bytes of messages that wait for other nodes"),
    "terrazzo_peers_dropped_qos0_total": Figure("dropped_qos0", "Messages at QoS 0 for which there was no room"),
    "terrazzo_peers_dropped_total": Figure("dropped", "Messages at QoS 1 and 2 for which there was no room"),
    "terrazzo_peers_lost_total": Figure("lost", "Messages that a node may not have got before it was gone"),
}

RETAINED = {
    "terrazzo_retained_sequence": Figure("sequence", "Number of the change of retained messages that was read last"),
    "terrazzo_retained_read_total": Figure("read", "Changes of retained messages that were read, of all nodes"),
    "terrazzo_retained_kept_total": Figure("kept", "Changes of retained messages of this node that the log has"),
    "terrazzo_retained_again_total": Figure("again", "Attempts to keep a retained message that had no answer"),
    "terrazzo_retained_full_total": Figure("full", "Messages that are not retained as the log had no room"),
    "terrazzo_retained_refused_total": Figure(
        "refused", "Messages that are not retained as too much waited for the log"
    ),
    "terrazzo_retained_damaged_total": Figure("damaged", "Changes of retained messages that can't be read"),
    "terrazzo_retained_waiting_bytes": Figure("waiting_bytes", "Bytes of retained messages that wait for the log"),
}

SESSIONS = {
    "terrazzo_sessions_expired_total": Figure("expired", "Persistent sessions of all nodes that this one has ended"),
    "terrazzo_sessions_orphaned_total": Figure("orphaned", "Sessions and wills of dead nodes that it took care of"),
    "terrazzo_sessions_wills_total": Figure("wills", "Wills from the log that this node has published"),
    "terrazzo_sessions_damaged_total": Figure("damaged", "Messages of sessions and wills that can't be read"),
}

SESSION_VIEW = {
    "terrazzo_sessions_known": Figure("sessions", "Persistent sessions of all nodes"),
    "terrazzo_sessions_filters": Figure("filters", "Topic filters that these have subscribed to"),
    "terrazzo_sessions_waiting_messages": Figure("messages", "Messages in the log that wait for them"),
    "terrazzo_sessions_waiting_bytes": Figure("bytes", "Bytes of these"),
    "terrazzo_sessions_overflow_total": Figure("refused", "Messages for which a session, or its company, had no room"),
}

SESSION_RECORDS = {
    "terrazzo_sessions_written_total": Figure("written", "States of sessions and wills that the log has of this node"),
    "terrazzo_sessions_again_total": Figure("again", "Attempts to keep one that had no answer, or no room"),
    "terrazzo_sessions_lost_total": Figure("lost", "Sessions that another node took over while this one had them"),
}

SESSION_QUEUES = {
    "terrazzo_sessions_queued_total": Figure("queued", "Messages for sessions that the log has of this node"),
    "terrazzo_sessions_groups_total": Figure("groups", "Groups in which these were put into the log"),
    "terrazzo_sessions_queue_again_total": Figure("again", "Attempts to keep such a group that had no answer"),
    "terrazzo_sessions_queue_full_total": Figure("full", "Messages for sessions for which the log had no room"),
    "terrazzo_sessions_queue_refused_total": Figure(
        "refused", "Messages that sessions don't have as too much waited for the log"
    ),
    "terrazzo_sessions_queue_waiting_bytes": Figure("waiting_bytes", "Bytes for sessions that wait for the log"),
}

FRONT = {
    "terrazzo_front_frames_total": Figure("frames", "Frames of reports that the log has acknowledged to this front"),
    "terrazzo_front_messages_total": Figure("messages", "Reports in these"),
    "terrazzo_front_bytes_total": Figure("bytes", "Bytes of these"),
    "terrazzo_front_events_total": Figure(
        "events", "Connections, disconnections and fates of messages of which the leader was told"
    ),
    "terrazzo_front_rolls_total": Figure("rolls", "Times that all connected terminals were named to a leader"),
    "terrazzo_front_again_total": Figure("again", "Attempts to send a frame that had no answer, or a refusal"),
}
