"""For each alert the figures at which it fires, and those at which it must not."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """Series in promtool's notation; whether the alert fires ``at``. A value a minute, each ten where that is hours."""

    alert: str
    series: dict[str, str]
    fires: bool
    at: str = "30m"


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    """One series of the platform."""
    more = "".join(f",{label}='{value}'" for label, value in labels.items())
    return {f"{name}{{job='terrazzo',instance='a'{more}}}": values}


def each(alert: str, fires: dict[str, str], quiet: dict[str, str], at: str = "30m") -> list[Case]:
    """Both cases of an alert."""
    return [Case(alert, fires, True, at), Case(alert, quiet, False, at)]


CASES = [
    *each("TerrazzoDown", series("up", "0x60"), series("up", "1x29 0 1x30")),
    *each(
        "TerrazzoNotReady",
        series("terrazzo_task_up", "0x60", task="ingest"),
        series("terrazzo_task_up", "1x28 0 1x30", task="ingest"),
    ),
    *each(
        "TerrazzoTaskRestarts",
        series("terrazzo_task_restarts_total", "0+1x60", task="retention"),
        series("terrazzo_task_restarts_total", "0x20 2x40", task="retention"),
    ),
    *each(
        "TerrazzoStoreRefuses",
        series("terrazzo_ingest_store_failures_total", "0+3x60"),
        series("terrazzo_ingest_store_failures_total", "7x60"),
    ),
    *each(
        "TerrazzoStoreBehind",
        series("terrazzo_ingest_backlog", "60000x60"),
        series("terrazzo_ingest_backlog", "900x60"),
    ),
    *each(
        "TerrazzoStoreBehind",
        series("terrazzo_ingest_pauses_total", "0+30x60"),
        series("terrazzo_ingest_pauses_total", "0+1x60"),
    ),
    *each(
        "TerrazzoCommitSlow",
        series("terrazzo_commit_seconds_bucket", "0+90x60", le="0.1")
        | series("terrazzo_commit_seconds_bucket", "0+100x60", le="1")
        | series("terrazzo_commit_seconds_bucket", "0+100x60", le="+Inf"),
        series("terrazzo_commit_seconds_bucket", "0+100x60", le="0.1")
        | series("terrazzo_commit_seconds_bucket", "0+100x60", le="1")
        | series("terrazzo_commit_seconds_bucket", "0+100x60", le="+Inf"),
    ),
    *each(
        "TerrazzoMappingBehind",
        series("terrazzo_effects_waiting", "20000x60"),
        series("terrazzo_effects_waiting", "9x60"),
    ),
    *each(
        "TerrazzoMappingFaults",
        series("terrazzo_mapping_faults_total", "0x25 1x35"),
        series("terrazzo_mapping_faults_total", "5x60"),
    ),
    *each(
        "TerrazzoInfluxDBAway",
        series("terrazzo_store_away_since_seconds", "1700000000x60"),
        series("terrazzo_store_away_since_seconds", "0x60"),
    ),
    *each(
        "TerrazzoDiskNearlyFull",
        series("terrazzo_disk_free_bytes", "4e9x60") | series("terrazzo_disk_size_bytes", "1e11x60"),
        series("terrazzo_disk_free_bytes", "4e10x60") | series("terrazzo_disk_size_bytes", "1e11x60"),
    ),
    *each(
        "TerrazzoDiskNearlyFull",
        series("terrazzo_disk_free_bytes", "5e8x60"),
        series("terrazzo_disk_free_bytes", "2e9x60"),
    ),
    *each(
        "TerrazzoDiskDaysLeft",
        series("terrazzo_disk_free_bytes", "1e10-2e7x300"),
        series("terrazzo_disk_free_bytes", "1e11-1e5x300"),
        at="14h",
    ),
    *each(
        "TerrazzoBackupOld",
        series("terrazzo_backup_last_success_timestamp_seconds", "1x300"),
        series("terrazzo_backup_last_success_timestamp_seconds", "100000x300"),
        at="40h",
    ),
    *each(
        "TerrazzoNoBackup",
        series("terrazzo_backup_last_success_timestamp_seconds", "0x300"),
        series("terrazzo_backup_last_success_timestamp_seconds", "5x300"),
        at="40h",
    ),
    *each(
        "TerrazzoBackupFails",
        series("terrazzo_backup_failures_total", "0x20 1x40"),
        series("terrazzo_backup_failures_total", "3x60"),
    ),
    *each(
        "TerrazzoCertificateEnds",
        series("terrazzo_certificate_expiry_timestamp_seconds", "600000x20", listener="http"),
        series("terrazzo_certificate_expiry_timestamp_seconds", "9e9x20", listener="http"),
        at="2h",
    ),
    *each(
        "TerrazzoCertificateStale",
        series("terrazzo_certificate_stale", "1x60", listener="mqtt"),
        series("terrazzo_certificate_stale", "0x25 1x35", listener="mqtt"),
    ),
    *each(
        "TerrazzoRefusals",
        series("terrazzo_refusals_total", "0+100x60", reason="wrong_pin"),
        series("terrazzo_refusals_total", "0+10x60", reason="wrong_pin"),
    ),
    *each(
        "TerrazzoTerminalsGone",
        series("terrazzo_broker_clients", "1000x25 100x35"),
        series("terrazzo_broker_clients", "8x25 1x35"),
    ),
    *each(
        "TerrazzoConnectionsNearBound",
        series("terrazzo_broker_connections", "9500x60") | series("terrazzo_limit", "10000x60", key="connections"),
        series("terrazzo_broker_connections", "8000x60") | series("terrazzo_limit", "10000x60", key="connections"),
    ),
    *each("TerrazzoMemoryTight", series("terrazzo_memory_tight", "1x60"), series("terrazzo_memory_tight", "0x28 1x32")),
    *each(
        "TerrazzoLoopHeld", series("terrazzo_loop_held_total", "0+60x60"), series("terrazzo_loop_held_total", "0+1x60")
    ),
    *each(
        "TerrazzoClockOff", series("terrazzo_clock_seconds", "60+60x60"), series("terrazzo_clock_seconds", "0+60x60")
    ),
    *each(
        "TerrazzoMessagesFail",
        series("terrazzo_messenger_failed_total", "0+1x60"),
        series("terrazzo_messenger_failed_total", "2x60"),
    ),
]
