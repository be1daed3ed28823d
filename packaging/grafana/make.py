"""Writes the dashboards beside it, for Grafana's provisioning: python packaging/grafana/make.py [FOLDER].

A dashboard is a list of rows, a row a list of panels, a panel a title, a unit and its queries by legend.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

_WIDTH, _HEIGHT = 24, 7
_BY = 'instance=~"$instance"'


class Panel(NamedTuple):
    """One panel; ``kind``: ``timeseries`` or ``stat``. ``queries``: PromQL by legend, ``{}`` for the selector."""

    title: str
    unit: str
    queries: dict[str, str]
    kind: str = "timeseries"
    text: str = ""


def rate(metric: str, by: str = "") -> str:
    """Per second, over what Grafana finds right for the width of the panel."""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({metric}{{{_BY}}}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str = "") -> str:
    """A quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{_BY}}}[$__rate_interval])))"


def now(metric: str, more: str = "") -> str:
    """A gauge as it is."""
    return f"{metric}{{{_BY}{more}}}"


DASHBOARDS: dict[str, tuple[str, list[list[Panel]]]] = {
    "terrazzo-overview": (
        "Terrazzo: overview",
        [
            [
                Panel("Terminals", "short", {"connected": now("terrazzo_broker_clients")}, "stat"),
                Panel("Reports", "cps", {"stored": rate("terrazzo_ingest_messages_total")}, "stat"),
                Panel("Tasks down", "short", {"down": f"count(terrazzo_task_up{{{_BY}}} == 0) or vector(0)"}, "stat"),
                Panel(
                    "Last backup",
                    "s",
                    {"age": f"time() - terrazzo_backup_last_success_timestamp_seconds{{{_BY}}}"},
                    "stat",
                    "Since it ended; an age of decades says that there is none",
                ),
                Panel("Disk free", "bytes", {"free": now("terrazzo_disk_free_bytes")}, "stat"),
                Panel("Version", "short", {"{{version}} {{commit}}": now("terrazzo_build_info")}, "stat"),
            ],
            [
                Panel(
                    "Reports and acknowledgement",
                    "cps",
                    {
                        "stored": rate("terrazzo_ingest_messages_total"),
                        "rejects {{kind}}": rate("terrazzo_ingest_rejects_total", "kind"),
                    },
                ),
                Panel(
                    "From arrival to acknowledgement",
                    "s",
                    {
                        "p50": quantile(0.5, "terrazzo_ingest_seconds"),
                        "p99": quantile(0.99, "terrazzo_ingest_seconds"),
                        "commit p99": quantile(0.99, "terrazzo_commit_seconds"),
                    },
                ),
                Panel("Refused terminals", "cps", {"{{reason}}": rate("terrazzo_refusals_total", "reason")}),
            ],
            [
                Panel(
                    "Processor",
                    "percentunit",
                    {"of a core": rate("process_cpu_seconds_total")},
                ),
                Panel(
                    "Memory",
                    "bytes",
                    {
                        "resident": now("process_resident_memory_bytes"),
                        "{{kind}}": now("terrazzo_memory_bytes"),
                        "ceiling": now("terrazzo_memory_ceiling_bytes"),
                    },
                ),
                Panel(
                    "Event loop",
                    "s",
                    {
                        "late, p99": quantile(0.99, "terrazzo_loop_delay_seconds"),
                        "longest since the start": now("terrazzo_loop_delay_max_seconds"),
                    },
                ),
            ],
        ],
    ),
    "terrazzo-broker": (
        "Terrazzo: broker",
        [
            [
                Panel(
                    "Connections",
                    "short",
                    {
                        "logged in": now("terrazzo_broker_clients"),
                        "all": now("terrazzo_broker_connections"),
                        "limit": now("terrazzo_limit", ', key="connections"'),
                    },
                ),
                Panel(
                    "Logins",
                    "cps",
                    {
                        "accepted": rate("terrazzo_broker_connects_total"),
                        "refused": rate("terrazzo_broker_connects_refused_total"),
                        "taken over": rate("terrazzo_broker_takeovers_total"),
                        "waited": rate("terrazzo_broker_connects_delayed_total"),
                    },
                ),
            ],
            [
                Panel(
                    "Messages in",
                    "cps",
                    {f"QoS {qos}": rate(f"terrazzo_broker_messages_in_qos{qos}_total") for qos in (0, 1, 2)},
                ),
                Panel("Messages out", "cps", {"sent": rate("terrazzo_broker_messages_out_total")}),
                Panel("Dropped", "cps", {"{{reason}}": rate("terrazzo_broker_dropped_total", "reason")}),
            ],
            [
                Panel(
                    "Bytes",
                    "Bps",
                    {"in": rate("terrazzo_broker_bytes_in_total"), "out": rate("terrazzo_broker_bytes_out_total")},
                ),
                Panel(
                    "Ended",
                    "cps",
                    {
                        "keep-alive": rate("terrazzo_broker_keepalive_timeouts_total"),
                        "protocol error": rate("terrazzo_broker_protocol_errors_total"),
                        "never logged in": rate("terrazzo_broker_connect_timeouts_total"),
                    },
                ),
                Panel("Retained", "short", {"messages": now("terrazzo_broker_retained_messages")}),
            ],
        ],
    ),
    "terrazzo-data": (
        "Terrazzo: store, mapping, commands",
        [
            [
                Panel(
                    "Waiting",
                    "short",
                    {
                        "reports not stored": now("terrazzo_ingest_backlog"),
                        "events and labels not written": now("terrazzo_effects_waiting"),
                        "batches for InfluxDB": now("terrazzo_store_spool_batches"),
                    },
                ),
                Panel("Queries, p95", "s", {"{{query}}": quantile(0.95, "terrazzo_query_seconds", "query")}),
                Panel("Memory of the store", "bytes", {"{{part}}": now("terrazzo_store_memory_bytes")}),
            ],
            [
                Panel(
                    "Mapping",
                    "cps",
                    {
                        "reports": rate("terrazzo_mapping_messages_total"),
                        "records": rate("terrazzo_mapping_records_total"),
                        "late": rate("terrazzo_mapping_late_total"),
                        "faults": rate("terrazzo_mapping_faults_total"),
                    },
                ),
                Panel(
                    "Events and labels",
                    "cps",
                    {
                        "events": rate("terrazzo_mapping_events_total"),
                        "labels opened": rate("terrazzo_mapping_labels_opened_total"),
                        "labels closed": rate("terrazzo_mapping_labels_closed_total"),
                    },
                ),
                Panel("Commands", "cps", {"{{state}}": rate("terrazzo_commands_total", "state")}),
            ],
            [
                Panel(
                    "Messages",
                    "cps",
                    {
                        "sent": rate("terrazzo_messenger_sent_total"),
                        "given up": rate("terrazzo_messenger_failed_total"),
                    },
                ),
                Panel(
                    "Disk",
                    "bytes",
                    {"free": now("terrazzo_disk_free_bytes"), "size": now("terrazzo_disk_size_bytes")},
                ),
            ],
        ],
    ),
    "terrazzo-api": (
        "Terrazzo: APIs",
        [
            [
                Panel(
                    "Requests",
                    "cps",
                    {"{{operation}}": f"topk(10, {rate('terrazzo_api_requests_total', 'operation')})"},
                ),
                Panel(
                    "Time to answer, p95", "s", {"{{operation}}": quantile(0.95, "terrazzo_api_seconds", "operation")}
                ),
            ],
            [
                Panel("Connections", "short", {"{{port}}": now("terrazzo_api_connections")}),
                Panel("Refused", "cps", {"HTTP {{status}}": rate("terrazzo_api_refused_total", "status")}),
                Panel(
                    "Live",
                    "cps",
                    {
                        "sent": rate("terrazzo_live_frames_sent_total"),
                        "overwritten": rate("terrazzo_live_frames_dropped_total"),
                    },
                ),
            ],
            [
                Panel(
                    "Logins of users",
                    "cps",
                    {
                        "accepted": rate("terrazzo_user_login_accepted_total"),
                        "wrong": rate("terrazzo_user_login_wrong_credentials_total"),
                        "throttled": rate("terrazzo_user_login_throttled_total"),
                    },
                ),
            ],
        ],
    ),
}


def dashboard(uid: str, title: str, rows: list[list[Panel]]) -> dict[str, Any]:
    """One dashboard as Grafana's provisioning reads it."""
    panels: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        width = _WIDTH // len(row)
        for place, panel in enumerate(row):
            at = {"x": place * width, "y": number * _HEIGHT, "w": width, "h": _HEIGHT}
            panels.append(_panel(len(panels) + 1, panel, at))
    return {
        "uid": uid,
        "title": title,
        "tags": ["terrazzo"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "graphTooltip": 1,
        "templating": {"list": [_SOURCE, _INSTANCE]},
        "links": [{"type": "dashboards", "tags": ["terrazzo"], "title": "Terrazzo", "asDropdown": True}],
        "panels": panels,
    }


_SOURCE = {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}
_INSTANCE = {
    "name": "instance",
    "label": "Platform",
    "type": "query",
    "datasource": {"type": "prometheus", "uid": "${source}"},
    "query": "label_values(terrazzo_build_info, instance)",
    "refresh": 2,
    "includeAll": True,
    "multi": True,
    "allValue": ".*",
}


def _panel(number: int, panel: Panel, at: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${source}"}
    targets = [
        {"refId": chr(ord("A") + place), "datasource": source, "expr": query, "legendFormat": legend}
        for place, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": source,
        "gridPos": at,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi"}} if panel.kind == "timeseries" else {"textMode": "auto"},
        "targets": targets,
    }


def main(folder: Path) -> None:
    """Writes all dashboards."""
    for uid, (title, rows) in DASHBOARDS.items():
        text = json.dumps(dashboard(uid, title, rows), indent=1)
        (folder / f"{uid}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
