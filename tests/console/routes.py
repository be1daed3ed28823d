"""Every view of the console: for what holds on all of them, and for pictures. A page adds its views here."""

from __future__ import annotations

from dataclasses import dataclass

from running import Platform

ROUTES = {
    "overview": "#/overview",
    "open-events": "#/events",
    "events": "#/events?state=all",
    "event": "#/events?state=all&event=1",
    "labels": "#/events/labels",
    "retainers": "#/events/retainers",
    "retainer": "#/events/retainers/1",
    "handover": "#/events/handover",
    "terminals": "#/terminals",
    "unknown": "#/terminals?unknown=1",
    "configurations": "#/terminals?configurations=1",
    "terminal": "#/terminals/demo-chiller-1",
    "refused": "#/terminals/demo-meter-boiler",
    "messages": "#/terminals/demo-chiller-1?tab=messages",
    "commands": "#/terminals/demo-chiller-1?tab=commands",
    "trace": "#/terminals/demo-chiller-1?tab=trace",
    "connect": "#/terminals/demo-chiller-1?tab=connect",
    "mapping": "#/mapping",
    "mapping-table": "#/mapping/mapping/1",
    "mapping-variables": "#/mapping/mapping/1?tab=variables",
    "mapping-replay": "#/mapping/mapping/1?tab=replay",
    "control-tables": "#/mapping/control",
    "control-table": "#/mapping/control/1",
    "logbook": "#/objects/1?tab=log",
    "files": "#/objects/1?record=file",
    "statistics": "#/statistics",
    "calculations": "#/statistics/calculate",
    "balances": "#/statistics/balance",
    "rules": "#/rules",
    "messages-sent": "#/rules/messages",
    "campaigns": "#/campaigns",
    "clients": "#/broker",
    "subscriptions": "#/broker/subscriptions",
    "retained": "#/broker/retained",
    "customers": "#/customers",
    "customer": "#/customers/1",
    "users": "#/access",
    "api-keys": "#/access/api-keys",
    "claim-keys": "#/access/claim-keys",
    "failed-logins": "#/access/failures",
    "audit": "#/audit",
    "waiting-commands": "#/commands",
    "expired-commands": "#/commands/expired",
    "all-commands": "#/commands/all",
    "objects": "#/objects",
    "object": "#/objects/1",
    "map": "#/objects?view=map",
    "dashboards": "#/dashboards",
    "no-such-page": "#/no-such-page",
}
"""Name to fragment, on the demo's plant."""

SUPER = {
    "machine": "#/machine",
    "adding-a-company": "#/access/companies?do=add",
    "broker-now": "#/broker/now",
    "companies": "#/access/companies",
    "bridges": "#/broker/bridges",
}
"""What super users alone see."""

DIALOGS = {
    "adding-a-terminal": "#/terminals?do=add",
    "adding-an-object": "#/objects?do=add",
    "importing-terminals": "#/terminals?do=import",
    "adding-a-rule": "#/rules?do=add",
    "adding-a-user": "#/access?do=add",
    "adding-a-campaign": "#/campaigns?do=add",
    "adding-an-api-key": "#/access/api-keys?do=add",
    "adding-a-retainer": "#/events/retainers?do=add",
    "adding-a-customer": "#/customers?do=add",
    "adding-a-group": "#/objects?do=group",
    "adding-statistics": "#/statistics?do=add",
    "adding-a-configuration": "#/terminals?configurations=1&do=add",
    "adding-a-balance": "#/statistics/balance?do=add",
    "adding-a-claim-key": "#/access/claim-keys?do=add",
    "adding-a-calculation": "#/statistics/calculate?do=add",
    "rule-of-an-event": "#/rules?new=event&code=HOT&object=1&severity=major",
}
"""What begins in a dialog; between two of a page stands one of another page, by which the first one goes."""

WALL = "#/wall?key={}"


@dataclass(frozen=True)
class View:
    """One of them, and what one has to know to go there.

    Attributes:
        route: its fragment.
        is_super: whether super users alone see it.
    """

    name: str
    route: str
    is_super: bool = False

    @property
    def is_dialog(self) -> bool:
        """Whether a dialog opens, which keeps the focus to itself."""
        return self.name in ("event", "rule") or "do=" in self.route or "new=" in self.route

    @property
    def is_wall(self) -> bool:
        """Whether it is a page of its own, without the frame around the others."""
        return self.route.startswith("#/wall")


def views_of(plant: Platform) -> list[View]:
    """All views, of the company whose administrator is logged in; a wall is the last: whoever leaves it begins anew."""
    own = {**ROUTES, **DIALOGS, **record_routes(plant)}
    wall = {"wall": own.pop("wall")} if "wall" in own else {}
    ordinary = [View(name, route) for name, route in own.items()]
    of_super = [View(name, route, is_super=True) for name, route in SUPER.items()]
    return [*ordinary, *of_super, *(View(name, route) for name, route in wall.items())]


def record_routes(plant: Platform) -> dict[str, str]:
    """Views whose addresses name records with keys that are made up: of the newest record of each kind."""
    routes = {}
    for name, (action, route) in OF_RECORDS.items():
        if (uid := _newest(plant, action)) is not None:
            routes[name] = route.format(uid)
    if (dashboard := _newest(plant, "get_dashboard_list")) is not None:
        routes["wall"] = WALL.format(plant.call("renew_wall_link", uid=dashboard)["key"])
    return routes


OF_RECORDS = {
    "dashboard": ("get_dashboard_list", "#/dashboards/{}"),
    "dashboard-page": ("get_dashboard_list", "#/dashboards/{}?page=Dashboard-2"),
    "editor": ("get_dashboard_list", "#/dashboards/{}?edit=1"),
    "wall-link": ("get_dashboard_list", "#/dashboards/{}?do=link"),
    "statistic": ("get_statistics_script_list", "#/statistics/statistics/{}"),
    "calculation": ("get_calculate_script_list", "#/statistics/calculate/{}"),
    "balance": ("get_balance_list", "#/statistics/balance/{}"),
    "configuration": ("get_terminal_config_list", "#/terminals?configurations={}"),
    "campaign": ("get_campaign_list", "#/campaigns/{}"),
    "rule": ("get_rule_list", "#/rules/{}"),
    "handover-kept": ("get_handover_list", "#/events/handover?id={}"),
}


def _newest(plant: Platform, action: str) -> str | None:
    found = plant.call(action)
    rows = found if isinstance(found, list) else found["data"]
    return str(rows[0].get("uid") or rows[0]["id"]) if rows else None
