"""The names under which ``/metrics`` shows what the parts count, each with the field that it is read from.

A name with ``_total`` at its end is a counter, which only rises; the others are gauges.
"""

from __future__ import annotations

STORE = {
    "terrazzo_store_spooled_records_total": "spooled_records",
    "terrazzo_store_refused_records_total": "refused_records",
    "terrazzo_store_spool_batches": "spool_batches",
    "terrazzo_store_spool_bytes": "spool_bytes",
}

BROKER = {
    "terrazzo_broker_connections": "connections",
    "terrazzo_broker_clients": "clients",
    "terrazzo_broker_accepted_total": "accepted",
    "terrazzo_broker_connects_total": "connects",
    "terrazzo_broker_connects_refused_total": "connects_refused",
    "terrazzo_broker_takeovers_total": "takeovers",
    "terrazzo_broker_messages_in_qos0_total": "messages_in_qos0",
    "terrazzo_broker_messages_in_qos1_total": "messages_in_qos1",
    "terrazzo_broker_messages_in_qos2_total": "messages_in_qos2",
    "terrazzo_broker_messages_out_total": "messages_out",
    "terrazzo_broker_messages_taken_total": "messages_taken",
    "terrazzo_broker_publishes_refused_total": "publishes_refused",
    "terrazzo_broker_subscribes_refused_total": "subscribes_refused",
    "terrazzo_broker_subscriptions": "subscriptions",
    "terrazzo_broker_bytes_in_total": "bytes_in",
    "terrazzo_broker_bytes_out_total": "bytes_out",
    "terrazzo_broker_protocol_errors_total": "protocol_errors",
    "terrazzo_broker_keepalive_timeouts_total": "keepalive_timeouts",
    "terrazzo_broker_connect_timeouts_total": "connect_timeouts",
    "terrazzo_broker_limited_connections_total": "limited_connections",
    "terrazzo_broker_limited_connect_rate_total": "limited_connect_rate",
    "terrazzo_broker_limited_owner_queues_total": "limited_owner_queues",
    "terrazzo_broker_limited_subscriptions_total": "limited_subscriptions",
    "terrazzo_broker_ended_unread_total": "ended_unread",
    "terrazzo_broker_limited_half_open_total": "limited_half_open",
    "terrazzo_broker_half_open_ended_total": "half_open_ended",
    "terrazzo_broker_connects_delayed_total": "connects_delayed",
    "terrazzo_broker_handshakes_failed_total": "handshakes_failed",
    "terrazzo_broker_proxy_headers_refused_total": "proxy_headers_refused",
    "terrazzo_broker_upgrades_refused_total": "upgrades_refused",
    "terrazzo_broker_wills_sent_total": "wills_sent",
    "terrazzo_broker_retained_messages": "retained_messages",
    "terrazzo_broker_retained_bytes": "retained_bytes",
    "terrazzo_broker_retained_memory_bytes": "retained_memory_bytes",
    "terrazzo_broker_retained_ended_total": "retained_ended",
    "terrazzo_broker_storage_commits_total": "storage_commits",
    "terrazzo_broker_storage_failures_total": "storage_failures",
    "terrazzo_broker_storage_refusals_total": "storage_refusals",
    "terrazzo_broker_work_deferred_total": "work_deferred",
    "terrazzo_broker_rate_limited_total": "rate_limited",
    "terrazzo_broker_publishers_slowed_total": "publishers_slowed",
    "terrazzo_broker_hook_failures_total": "hook_failures",
    "terrazzo_broker_task_failures_total": "task_failures",
    "terrazzo_broker_internal_errors_total": "internal_errors",
}

INGEST = {
    "terrazzo_ingest_messages_total": "messages",
    "terrazzo_ingest_bytes_total": "bytes",
    "terrazzo_ingest_clock_unset_total": "clock_unset",
    "terrazzo_ingest_batches_total": "batches",
    "terrazzo_ingest_commits_total": "commits",
    "terrazzo_ingest_commit_seconds_total": "commit_seconds",
    "terrazzo_ingest_commit_seconds_max": "commit_seconds_max",
    "terrazzo_ingest_store_failures_total": "store_failures",
    "terrazzo_ingest_store_refused_total": "store_refused",
    "terrazzo_ingest_shaping_failures_total": "shaping_failures",
    "terrazzo_ingest_withheld_total": "withheld",
    "terrazzo_ingest_pauses_total": "pauses",
    "terrazzo_ingest_backlog": "backlog",
    "terrazzo_ingest_backlog_bytes": "backlog_bytes",
}

MAPPING = {
    "terrazzo_mapping_messages_total": "messages",
    "terrazzo_mapping_records_total": "records",
    "terrazzo_mapping_late_total": "late",
    "terrazzo_mapping_events_total": "events",
    "terrazzo_mapping_labels_opened_total": "labels_opened",
    "terrazzo_mapping_labels_closed_total": "labels_closed",
    "terrazzo_mapping_faults_total": "faults",
}

EFFECTS = {
    "terrazzo_effects_waiting": "waiting",
    "terrazzo_effects_applied_total": "applied",
    "terrazzo_effects_failures_total": "failures",
    "terrazzo_effects_refused_total": "refused",
    "terrazzo_effects_pauses_total": "pauses",
    "terrazzo_effects_company_pauses_total": "company_pauses",
}

MESSENGER = {
    "terrazzo_messenger_attempts_total": "attempts",
    "terrazzo_messenger_sent_total": "sent",
    "terrazzo_messenger_failed_total": "failed",
    "terrazzo_messenger_unknown_total": "unknown",
    "terrazzo_messenger_retries_total": "retries",
    "terrazzo_messenger_refused_total": "refused",
}

RULES = {
    "terrazzo_rules_notices_total": "notices",
    "terrazzo_rules_messages_total": "messages",
    "terrazzo_rules_reminders_total": "reminders",
}

RULE_WATCH = {
    "terrazzo_rules_looks_total": "looks",
    "terrazzo_rules_watched": "watched",
    "terrazzo_rules_conditions": "open",
    "terrazzo_rules_conditions_refused_total": "unopened",
    "terrazzo_rules_refusals_untold_total": "untold_refusals",
}

RULE_COMMANDS = {
    "terrazzo_rules_commands_total": "commands",
    "terrazzo_rules_commands_refused_total": "commands_refused",
    "terrazzo_rules_runs_total": "runs",
    "terrazzo_rules_runs_missed_total": "runs_missed",
}

CAMPAIGNS = {
    "terrazzo_campaigns_running": "running",
}

COMMANDS = {
    "terrazzo_command_answers_dropped_total": "answers_dropped",
    "terrazzo_command_upgrades_refused_total": "upgrades_refused",
}

CONFIGURATIONS = {
    "terrazzo_terminal_configurations_sent_total": "sent",
    "terrazzo_terminal_configurations_lost_total": "lost",
    "terrazzo_terminal_configurations_refused_total": "refused",
    "terrazzo_terminal_configurations_reports_total": "reports",
}

LOGIN = {
    "terrazzo_login_accepted_total": "accepted",
    "terrazzo_login_wrong_credentials_total": "wrong_credentials",
    "terrazzo_login_not_authorized_total": "not_authorized",
    "terrazzo_login_bad_method_total": "bad_method",
    "terrazzo_login_throttled_total": "throttled",
    "terrazzo_login_busy_total": "busy",
}

REFUSALS = {
    "terrazzo_refusals_kept": "kept",
    "terrazzo_refusals_evicted_total": "evicted",
    "terrazzo_refusals_untold_total": "untold",
    "terrazzo_refusals_write_failures_total": "write_failures",
}

PROVISIONING = {
    "terrazzo_provision_claims_total": "claims",
    "terrazzo_provision_claims_refused_total": "claims_refused",
    "terrazzo_provision_promises_total": "promises",
    "terrazzo_provision_provisioned_total": "provisioned",
    "terrazzo_provision_expired_total": "expired",
}

USER_LOGIN = {
    "terrazzo_user_login_accepted_total": "accepted",
    "terrazzo_user_login_wrong_credentials_total": "wrong_credentials",
    "terrazzo_user_login_deactivated_total": "deactivated",
    "terrazzo_user_login_throttled_total": "throttled",
    "terrazzo_user_login_busy_total": "busy",
    "terrazzo_user_login_wrong_codes_total": "wrong_codes",
    "terrazzo_user_login_counted_total": "counted",
}

SINGLE_SIGN_ON = {
    "terrazzo_single_sign_on_begun_total": "begun",
    "terrazzo_single_sign_on_accepted_total": "accepted",
    "terrazzo_single_sign_on_refused_total": "refused",
}

PASSWORD_RESETS = {
    "terrazzo_password_reset_requested_total": "requested",
    "terrazzo_password_reset_sent_total": "sent",
    "terrazzo_password_reset_failed_total": "failed",
    "terrazzo_password_reset_left_total": "left",
    "terrazzo_password_reset_done_total": "reset",
}

ANALYSIS = {
    "terrazzo_analysis_pieces_total": "pieces",
    "terrazzo_analysis_redone_total": "redone",
    "terrazzo_analysis_late_marks_total": "late_marks",
    "terrazzo_analysis_failures_total": "failures",
}

LIVE = {
    "terrazzo_live_subscriptions": "subscriptions",
    "terrazzo_live_feeds": "feeds",
    "terrazzo_live_bytes_kept": "bytes_kept",
    "terrazzo_live_frames_published_total": "frames_published",
    "terrazzo_live_frames_sent_total": "frames_sent",
    "terrazzo_live_send_seconds_total": "send_seconds",
    "terrazzo_live_frames_dropped_total": "frames_dropped",
    "terrazzo_live_gaps_total": "gaps",
    "terrazzo_live_ended_total": "ended",
    "terrazzo_live_refused_total": "refused",
}

FORMER_DATA = {
    "terrazzo_store_purged_terminals_total": "purged_terminals",
    "terrazzo_store_purged_records_total": "purged_records",
}

FLAGS = {
    "terrazzo_flags_looks_total": "looks",
    "terrazzo_flags_changes_total": "changes",
    "terrazzo_flags_known": "known",
    "terrazzo_flags_timed": "timed",
}

QUOTAS = {
    "terrazzo_quota_records_refused_total": "records_refused",
    "terrazzo_quota_files_refused_total": "files_refused",
}

EVENT_QUOTAS = {
    "terrazzo_quota_events_removed_total": "events_removed",
    "terrazzo_quota_labels_removed_total": "labels_removed",
    "terrazzo_quota_labels_refused_total": "labels_refused",
    "terrazzo_quota_comments_refused_total": "comments_refused",
}

DECODERS = {
    "terrazzo_decoder_payloads_total": "decoded",
    "terrazzo_decoder_refused_total": "refused",
    "terrazzo_decoder_starts_total": "starts",
    "terrazzo_decoder_ended_total": "ended",
}

RETENTION = {"terrazzo_retention_seconds_total": "seconds"}

EVENT_EXPIRY = {"terrazzo_events_expired_total": "expired"}
