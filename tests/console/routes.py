"""Every view of the console: for what holds on all of them, and for pictures. A page adds its views here."""

from __future__ import annotations

ROUTES = {
    "overview": "#/overview",
    "events": "#/events?state=all",
    "event": "#/events?state=all&event=1",
    "labels": "#/events/labels",
    "terminals": "#/terminals",
    "unknown": "#/terminals?unknown=1",
    "terminal": "#/terminals/demo-chiller-1",
    "refused": "#/terminals/demo-meter-boiler",
    "messages": "#/terminals/demo-chiller-1?tab=messages",
    "commands": "#/terminals/demo-chiller-1?tab=commands",
    "connect": "#/terminals/demo-chiller-1?tab=connect",
    "mapping": "#/mapping",
    "mapping-table": "#/mapping/mapping/1",
    "mapping-variables": "#/mapping/mapping/1?tab=variables",
    "mapping-replay": "#/mapping/mapping/1?tab=replay",
    "control-table": "#/mapping/control/1",
    "logbook": "#/objects/1?tab=log",
    "no-such-page": "#/no-such-page",
}
"""Name to fragment, on the demo's plant."""
