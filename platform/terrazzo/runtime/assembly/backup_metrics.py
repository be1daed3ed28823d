"""The names under which ``/metrics`` shows how the last backup went."""

from __future__ import annotations

from terrazzo.runtime.assembly.metric_names import Figure

BACKUPS = {
    "terrazzo_backups_total": Figure("backups", "Backups made since the start of the process"),
    "terrazzo_backup_failures_total": Figure("failures", "Backups that could not be made"),
    "terrazzo_backup_last_success_timestamp_seconds": Figure(
        "ended_s", "Unix time at which the last backup ended, 0 where there is none"
    ),
    "terrazzo_backup_last_size_bytes": Figure("size", "Bytes of everything that the last backup names"),
    "terrazzo_backup_last_put_bytes": Figure("put_bytes", "Bytes of what its target did not have yet"),
    "terrazzo_backup_last_duration_seconds": Figure("took_s", "Seconds that the last backup took"),
}
