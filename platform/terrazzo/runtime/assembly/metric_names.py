"""The names under which ``/metrics`` shows what the parts count, each with its field and its text.

A name with ``_total`` at its end is a counter, which only rises; the others are gauges.
"""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """One number that a part counts.

    Attributes:
        field: that it is read from.
        text: what it says, for HELP: of what, in which unit, and the limit that it is about.
    """

    field: str
    text: str


STORE = {
    "terrazzo_store_spooled_records_total": Figure(
        "spooled_records", "Records that had to wait in the spool because InfluxDB did not take them at once"
    ),
    "terrazzo_store_refused_records_total": Figure(
        "refused_records", "Records that were acknowledged and that InfluxDB refused for good"
    ),
    "terrazzo_store_spool_batches": Figure("spool_batches", "Batches that wait in the spool for InfluxDB now"),
    "terrazzo_store_spool_bytes": Figure("spool_bytes", "Bytes that wait in the spool for InfluxDB now"),
    "terrazzo_store_away_since_seconds": Figure(
        "away_since_seconds", "Unix time since which InfluxDB is away, 0 while it is there"
    ),
    "terrazzo_store_sealed_records_total": Figure("sealed_records", "Records that were put into segments"),
    "terrazzo_store_sealing_failures_total": Figure(
        "sealing_failures", "Ranges of records that could not be put into segments and were left as they are"
    ),
    "terrazzo_store_unsealed_records": Figure("unsealed_records", "Records in no segment, as of the last look at all"),
    "terrazzo_store_sealing_backlog_records": Figure(
        "sealing_backlog", "Records of the series that have a block full to be put into a segment"
    ),
    "terrazzo_store_sealing_looked_ratio": Figure(
        "sealing_looked", "How much of all series the present look for what is to be sealed has seen, from 0 to 1"
    ),
    "terrazzo_store_sealing_waits_for_disk": Figure(
        "sealing_waits_for_disk", "1 while less than store.seal_free_mib of the disk is free: nothing is sealed"
    ),
    "terrazzo_store_damaged_segments": Figure(
        "damaged_segments", "Segments that a question came across and that can't be read in part or at all"
    ),
    "terrazzo_store_segment_cache_hits_total": Figure("segment_cache_hits", "Parts of segments found decoded"),
    "terrazzo_store_segment_cache_misses_total": Figure("segment_cache_misses", "Parts of segments that were decoded"),
    "terrazzo_store_written_bytes_total": Figure("written_bytes", "Bytes that were appended, before they are packed"),
}

BROKER = {
    "terrazzo_broker_connections": Figure("connections", "MQTT connections open now, logged in or not"),
    "terrazzo_broker_clients": Figure("clients", "MQTT clients that are logged in now"),
    "terrazzo_broker_accepted_total": Figure("accepted", "Sockets accepted by the MQTT listeners"),
    "terrazzo_broker_connects_total": Figure("connects", "Logins (CONNECT) accepted"),
    "terrazzo_broker_connects_refused_total": Figure(
        "connects_refused", "Logins (CONNECT) refused, for whatever reason"
    ),
    "terrazzo_broker_takeovers_total": Figure("takeovers", "Connections ended because their client id logged in again"),
    "terrazzo_broker_messages_in_qos0_total": Figure("messages_in_qos0", "Publishes received at QoS 0"),
    "terrazzo_broker_messages_in_qos1_total": Figure("messages_in_qos1", "Publishes received at QoS 1"),
    "terrazzo_broker_messages_in_qos2_total": Figure("messages_in_qos2", "Publishes received at QoS 2"),
    "terrazzo_broker_messages_out_total": Figure("messages_out", "Publishes sent to clients"),
    "terrazzo_broker_messages_taken_total": Figure("messages_taken", "Publishes handed to the ingest to be stored"),
    "terrazzo_broker_publishes_refused_total": Figure("publishes_refused", "Publishes that the client had no right to"),
    "terrazzo_broker_subscribes_refused_total": Figure(
        "subscribes_refused", "Subscriptions that the client had no right to"
    ),
    "terrazzo_broker_subscriptions": Figure("subscriptions", "Subscriptions that exist now"),
    "terrazzo_broker_bytes_in_total": Figure("bytes_in", "Bytes received from MQTT clients"),
    "terrazzo_broker_bytes_out_total": Figure("bytes_out", "Bytes sent to MQTT clients"),
    "terrazzo_broker_protocol_errors_total": Figure(
        "protocol_errors",
        "Connections ended because the client broke the rules of MQTT",
    ),
    "terrazzo_broker_keepalive_timeouts_total": Figure(
        "keepalive_timeouts",
        "Connections ended because nothing came within one and a half keep-alives",
    ),
    "terrazzo_broker_connect_timeouts_total": Figure("connect_timeouts", "Sockets that took too long to log in"),
    "terrazzo_broker_limited_connections_total": Figure("limited_connections", "Logins refused by limits.connections"),
    "terrazzo_broker_limited_connect_rate_total": Figure(
        "limited_connect_rate",
        "Logins whose turn would not have come in time, limits.connects_per_second",
    ),
    "terrazzo_broker_limited_owner_queues_total": Figure(
        "limited_owner_queues",
        "Messages that found the queues of their company full",
    ),
    "terrazzo_broker_limited_subscriptions_total": Figure(
        "limited_subscriptions",
        "Subscriptions refused by limits.company_subscriptions",
    ),
    "terrazzo_broker_ended_unread_total": Figure(
        "ended_unread",
        "Connections ended because the client did not read while memory was short",
    ),
    "terrazzo_broker_limited_half_open_total": Figure(
        "limited_half_open",
        "Sockets refused by limits.half_open or limits.half_open_per_address",
    ),
    "terrazzo_broker_half_open_ended_total": Figure(
        "half_open_ended",
        "Sockets that had not logged in and made room for others",
    ),
    "terrazzo_broker_connects_delayed_total": Figure(
        "connects_delayed",
        "Logins that waited for their turn, limits.connects_per_second",
    ),
    "terrazzo_broker_handshakes_failed_total": Figure(
        "handshakes_failed",
        "TLS handshakes of MQTT clients that failed",
    ),
    "terrazzo_broker_proxy_headers_refused_total": Figure(
        "proxy_headers_refused",
        "Connections of trusted proxies without a good PROXY header",
    ),
    "terrazzo_broker_upgrades_refused_total": Figure(
        "upgrades_refused",
        "HTTP requests that do not lead to MQTT over WebSocket",
    ),
    "terrazzo_broker_wills_sent_total": Figure("wills_sent", "Wills published because their client was gone"),
    "terrazzo_broker_retained_messages": Figure("retained_messages", "Retained messages that exist now"),
    "terrazzo_broker_retained_bytes": Figure("retained_bytes", "Bytes of the retained messages"),
    "terrazzo_broker_retained_memory_bytes": Figure(
        "retained_memory_bytes",
        "Bytes of the retained messages that are in memory",
    ),
    "terrazzo_broker_retained_ended_total": Figure(
        "retained_ended",
        "Retained messages removed because their owner was changed or deleted",
    ),
    "terrazzo_broker_storage_commits_total": Figure(
        "storage_commits",
        "Commits of the broker's sessions and retained messages to disk",
    ),
    "terrazzo_broker_storage_failures_total": Figure("storage_failures", "Commits of the broker that the disk refused"),
    "terrazzo_broker_storage_refusals_total": Figure(
        "storage_refusals",
        "Publishes and subscriptions refused while the disk refused commits",
    ),
    "terrazzo_broker_work_deferred_total": Figure(
        "work_deferred",
        "Pieces of work over what clients sent that were left for the event loop's next turn",
    ),
    "terrazzo_broker_rate_limited_total": Figure(
        "rate_limited",
        "Times that a client was read more slowly, limits.publish_per_second",
    ),
    "terrazzo_broker_publishers_slowed_total": Figure(
        "publishers_slowed",
        "Times that a client was not read because a subscriber that it feeds was behind",
    ),
    "terrazzo_broker_hook_failures_total": Figure(
        "hook_failures",
        "Errors of the platform in what the broker asked it",
    ),
    "terrazzo_broker_task_failures_total": Figure(
        "task_failures",
        "Long-lived tasks of the broker that failed and were started again",
    ),
    "terrazzo_broker_internal_errors_total": Figure(
        "internal_errors",
        "Errors of the broker itself, each of which ended one connection at most",
    ),
}

INGEST = {
    "terrazzo_ingest_messages_total": Figure("messages", "Reports of terminals that are stored, rejects among them"),
    "terrazzo_ingest_bytes_total": Figure("bytes", "Bytes of the payloads of these reports"),
    "terrazzo_ingest_clock_unset_total": Figure(
        "clock_unset",
        "Reports whose Time was before the year 2000, recorded at their arrival",
    ),
    "terrazzo_ingest_batches_total": Figure("batches", "Batches of reports that the broker handed over"),
    "terrazzo_ingest_commits_total": Figure("commits", "Commits to the time-series store"),
    "terrazzo_ingest_commit_seconds_total": Figure("commit_seconds", "Seconds that these commits took together"),
    "terrazzo_ingest_commit_seconds_max": Figure("commit_seconds_max", "Seconds of the longest commit since the start"),
    "terrazzo_ingest_store_failures_total": Figure(
        "store_failures",
        "Commits that the store did not take and that were tried again",
    ),
    "terrazzo_ingest_store_refused_total": Figure(
        "store_refused", "Records that the store never takes, kept as rejects"
    ),
    "terrazzo_ingest_shaping_failures_total": Figure(
        "shaping_failures", "Reports that are stored and whose mapping failed"
    ),
    "terrazzo_ingest_withheld_total": Figure(
        "withheld", "Publishes not acknowledged after a fault of the platform, to be sent again"
    ),
    "terrazzo_ingest_pauses_total": Figure(
        "pauses", "Times that reading from terminals paused because the store was behind"
    ),
    "terrazzo_ingest_disk_rests_total": Figure("disk_rests", "Times a company waited: its bytes made commits long"),
    "terrazzo_ingest_backlog": Figure("backlog", "Reports that are taken and not stored yet"),
    "terrazzo_ingest_backlog_bytes": Figure(
        "backlog_bytes",
        "Bytes of the payloads of reports that are not stored yet",
    ),
}

MAPPING = {
    "terrazzo_mapping_messages_total": Figure("messages", "Reports of terminals that feed objects"),
    "terrazzo_mapping_records_total": Figure("records", "Records of objects that the mapping made"),
    "terrazzo_mapping_late_total": Figure("late", "Reports older than what was known of their object"),
    "terrazzo_mapping_events_total": Figure("events", "Events that the mapping raised"),
    "terrazzo_mapping_labels_opened_total": Figure("labels_opened", "Labels that the mapping opened"),
    "terrazzo_mapping_labels_closed_total": Figure("labels_closed", "Labels that the mapping closed"),
    "terrazzo_mapping_faults_total": Figure(
        "faults",
        "Reports that went into an object not at all because something went wrong for it",
    ),
}

EFFECTS = {
    "terrazzo_effects_waiting": Figure("waiting", "Events and labels that are made and not in the database yet"),
    "terrazzo_effects_applied_total": Figure("applied", "Events and labels written to the database"),
    "terrazzo_effects_failures_total": Figure(
        "failures", "Attempts to write events and labels that failed and are repeated"
    ),
    "terrazzo_effects_refused_total": Figure("refused", "Events and labels that can not be written and were left out"),
    "terrazzo_effects_pauses_total": Figure(
        "pauses",
        "Times that all reports had to wait for events and labels to be written",
    ),
    "terrazzo_effects_company_pauses_total": Figure(
        "company_pauses",
        "Times that one company's reports had to wait for its events and labels",
    ),
}

MESSENGER = {
    "terrazzo_messenger_attempts_total": Figure(
        "attempts",
        "Attempts to send a message to a mail server, provider or webhook",
    ),
    "terrazzo_messenger_sent_total": Figure(
        "sent",
        "Messages that were taken by their mail server, provider or webhook",
    ),
    "terrazzo_messenger_failed_total": Figure("failed", "Messages given up"),
    "terrazzo_messenger_unknown_total": Figure("unknown", "Messages of which nobody knows whether they were taken"),
    "terrazzo_messenger_retries_total": Figure("retries", "Attempts after a first one that failed"),
    "terrazzo_messenger_refused_total": Figure(
        "refused",
        "Messages refused by the rate limit or because messenger.queued_messages wait",
    ),
}

RULES = {
    "terrazzo_rules_notices_total": Figure("notices", "Events and labels that rules had to tell of"),
    "terrazzo_rules_messages_total": Figure("messages", "Messages that rules handed to the messenger"),
    "terrazzo_rules_reminders_total": Figure("reminders", "Messages that repeat what nobody has acknowledged"),
}

RULE_WATCH = {
    "terrazzo_rules_looks_total": Figure("looks", "Times that rules looked at what a terminal or an object is like"),
    "terrazzo_rules_watched": Figure("watched", "Terminals and objects that rules watch now"),
    "terrazzo_rules_conditions": Figure("open", "Conditions of rules that hold now"),
    "terrazzo_rules_conditions_refused_total": Figure(
        "unopened", "Conditions of rules that held and were not opened because too many are open"
    ),
    "terrazzo_rules_refusals_untold_total": Figure(
        "untold_refusals", "Refusals of terminals that rules were not told of one by one"
    ),
    "terrazzo_rules_faults_total": Figure("faults", "Looks at terminals, objects and rules that failed"),
}

RULE_COMMANDS = {
    "terrazzo_rules_commands_total": Figure("commands", "Commands that rules gave"),
    "terrazzo_rules_commands_refused_total": Figure("commands_refused", "Commands of rules that were refused"),
    "terrazzo_rules_runs_total": Figure("runs", "Times that rules ran by the clock"),
    "terrazzo_rules_runs_missed_total": Figure(
        "runs_missed", "Times that rules should have run by the clock and did not"
    ),
}

CAMPAIGNS = {
    "terrazzo_campaigns_running": Figure("running", "Firmware campaigns that run now"),
    "terrazzo_campaigns_faults_total": Figure("faults", "Turns of campaigns and of their terminals that failed"),
}

COMMANDS = {
    "terrazzo_command_answers_dropped_total": Figure(
        "answers_dropped", "Answers of terminals to commands that the journal could not take"
    ),
    "terrazzo_command_upgrades_refused_total": Figure(
        "upgrades_refused",
        "AXUpgrade commands refused by command.upgrade_role",
    ),
}

CONFIGURATIONS = {
    "terrazzo_terminal_configurations_sent_total": Figure("sent", "Configurations sent to terminals"),
    "terrazzo_terminal_configurations_lost_total": Figure(
        "lost", "Configurations that were not acknowledged and go again when the terminal subscribes next"
    ),
    "terrazzo_terminal_configurations_refused_total": Figure(
        "refused",
        "Configurations that terminals said they refuse",
    ),
    "terrazzo_terminal_configurations_reports_total": Figure(
        "reports",
        "Reports of parameters held against the configuration that is wanted",
    ),
    "terrazzo_terminal_configurations_reports_left_total": Figure(
        "reports_left", "Long reports of parameters that were not read, as too many of their company waited"
    ),
}

LOGIN = {
    "terrazzo_login_accepted_total": Figure("accepted", "Logins of terminals accepted"),
    "terrazzo_login_wrong_credentials_total": Figure(
        "wrong_credentials",
        "Logins of terminals with an unknown uid, a wrong name, pin or signature",
    ),
    "terrazzo_login_not_authorized_total": Figure(
        "not_authorized",
        "Logins of terminals that are known and may not log in",
    ),
    "terrazzo_login_bad_method_total": Figure("bad_method", "Logins of terminals with a method that is not theirs"),
    "terrazzo_login_throttled_total": Figure("throttled", "Logins of terminals refused after too many failures"),
    "terrazzo_login_busy_total": Figure("busy", "Logins of terminals refused because too many were being checked"),
}

REFUSALS = {
    "terrazzo_refusals_kept": Figure("kept", "Refusals of terminals that are kept for terrazzo terminal why"),
    "terrazzo_refusals_evicted_total": Figure(
        "evicted",
        "Refusals that made room for newer ones of others, limits.refusals",
    ),
    "terrazzo_refusals_untold_total": Figure(
        "untold",
        "Refusals that live subscribers were not told of one by one, as there were too many",
    ),
    "terrazzo_refusals_write_failures_total": Figure(
        "write_failures",
        "Attempts to write the refusals to disk that failed",
    ),
}

PROVISIONING = {
    "terrazzo_provision_claims_total": Figure("claims", "Logins with a good claim key"),
    "terrazzo_provision_claims_refused_total": Figure(
        "claims_refused",
        "Logins with a known claim key that did not let the terminal in",
    ),
    "terrazzo_provision_promises_total": Figure(
        "promises",
        "Terminals that were registered and sent their credentials",
    ),
    "terrazzo_provision_provisioned_total": Figure(
        "provisioned",
        "Terminals that logged in with the credentials they were sent",
    ),
    "terrazzo_provision_expired_total": Figure(
        "expired",
        "Terminals that did not log in with them in time and were removed",
    ),
}

USER_LOGIN = {
    "terrazzo_user_login_accepted_total": Figure("accepted", "Logins of users accepted"),
    "terrazzo_user_login_wrong_credentials_total": Figure(
        "wrong_credentials",
        "Logins of users with a wrong name or password",
    ),
    "terrazzo_user_login_deactivated_total": Figure(
        "deactivated",
        "Logins of users who, or whose company, are deactivated",
    ),
    "terrazzo_user_login_throttled_total": Figure("throttled", "Logins of users refused after too many failures"),
    "terrazzo_user_login_busy_total": Figure(
        "busy",
        "Logins of users refused because too many passwords were being checked",
    ),
    "terrazzo_user_login_wrong_codes_total": Figure("wrong_codes", "Wrong codes of second factors"),
    "terrazzo_user_login_counted_total": Figure(
        "counted",
        "Failed logins of users without an entry of their own in the audit log",
    ),
}

SINGLE_SIGN_ON = {
    "terrazzo_single_sign_on_begun_total": Figure("begun", "Single sign-ons begun"),
    "terrazzo_single_sign_on_accepted_total": Figure("accepted", "Single sign-ons that ended in a login"),
    "terrazzo_single_sign_on_refused_total": Figure("refused", "Single sign-ons refused"),
}

PASSWORD_RESETS = {
    "terrazzo_password_reset_requested_total": Figure("requested", "Codes to reset a password that were asked for"),
    "terrazzo_password_reset_sent_total": Figure("sent", "Codes to reset a password that were sent"),
    "terrazzo_password_reset_failed_total": Figure(
        "failed",
        "Codes to reset a password that the mail server did not take",
    ),
    "terrazzo_password_reset_left_total": Figure(
        "left",
        "Requests for a code that nothing was sent for: no such user or address, or too many",
    ),
    "terrazzo_password_reset_done_total": Figure("reset", "Passwords that were reset with a code"),
    "terrazzo_password_reset_refused_total": Figure("refused", "Codes to reset a password that were no good"),
}

ANALYSIS = {
    "terrazzo_analysis_pieces_total": Figure(
        "pieces",
        "Pieces of new periods of statistics, calculations and balances",
    ),
    "terrazzo_analysis_redone_total": Figure(
        "redone",
        "Pieces of periods that were computed before, because records came late",
    ),
    "terrazzo_analysis_late_marks_total": Figure("late_marks", "Marks that records of a finished period came late"),
    "terrazzo_analysis_failures_total": Figure(
        "failures",
        "Pieces of jobs, marks of late records and scripts that failed; each rests, and the others go on",
    ),
}

LIVE = {
    "terrazzo_live_subscriptions": Figure("subscriptions", "Live subscriptions that exist now"),
    "terrazzo_live_feeds": Figure("feeds", "Feeds that exist now, one for equal subscriptions"),
    "terrazzo_live_bytes_kept": Figure("bytes_kept", "Bytes kept for subscribers who are behind or come back"),
    "terrazzo_live_frames_published_total": Figure("frames_published", "Live frames that somebody had subscribed to"),
    "terrazzo_live_frames_sent_total": Figure("frames_sent", "Live frames sent to subscribers"),
    "terrazzo_live_send_seconds_total": Figure("send_seconds", "Processor time spent on sending live frames"),
    "terrazzo_live_frames_dropped_total": Figure(
        "frames_dropped",
        "Live frames overwritten before a slow subscriber had read them",
    ),
    "terrazzo_live_gaps_total": Figure("gaps", "Times that a subscriber was told that frames are missing"),
    "terrazzo_live_ended_total": Figure("ended", "Subscriptions ended because their user lost the right to them"),
    "terrazzo_live_refused_total": Figure("refused", "Subscriptions refused by limits.ws_subscriptions"),
}

FORMER_DATA = {
    "terrazzo_store_purged_terminals_total": Figure(
        "purged_terminals",
        "Deleted terminals whose records were deleted, store.deleted_retention_days",
    ),
    "terrazzo_store_purged_records_total": Figure("purged_records", "Records of deleted terminals that were deleted"),
}

FLAGS = {
    "terrazzo_flags_looks_total": Figure("looks", "Times that an object's flags were worked out"),
    "terrazzo_flags_changes_total": Figure("changes", "Changes of objects' flags"),
    "terrazzo_flags_known": Figure("known", "Objects whose flags are followed now"),
    "terrazzo_flags_timed": Figure("timed", "Objects whose flags go by when their last report came"),
}

QUOTAS = {
    "terrazzo_quota_records_refused_total": Figure(
        "records_refused",
        "Records refused by limits.company_records or limits.company_record_bytes",
    ),
    "terrazzo_quota_files_refused_total": Figure(
        "files_refused",
        "Files refused by limits.company_files or limits.company_file_bytes",
    ),
}

EVENT_QUOTAS = {
    "terrazzo_quota_events_removed_total": Figure(
        "events_removed",
        "Oldest events removed by limits.object_events, limits.company_events or limits.company_event_bytes",
    ),
    "terrazzo_quota_labels_removed_total": Figure("labels_removed", "Oldest closed labels removed by the same limits"),
    "terrazzo_quota_labels_refused_total": Figure(
        "labels_refused",
        "Labels that were not opened because as many are open as may be",
    ),
    "terrazzo_quota_comments_refused_total": Figure(
        "comments_refused",
        "Comments refused by limits.company_event_bytes",
    ),
}

DECODERS = {
    "terrazzo_decoder_payloads_total": Figure("decoded", "Payloads that decoders have read"),
    "terrazzo_decoder_refused_total": Figure("refused", "Payloads that a decoder refused or took too long for"),
    "terrazzo_decoder_starts_total": Figure("starts", "Times that the process of decoders was started"),
    "terrazzo_decoder_ended_total": Figure(
        "ended", "Times that it was ended because a payload took too long or too much"
    ),
}

RETENTION = {
    "terrazzo_retention_seconds_total": Figure("seconds", "Seconds spent on deleting what is older than its retention"),
}

EVENT_EXPIRY = {"terrazzo_events_expired_total": Figure("expired", "Events that time has cleared")}
