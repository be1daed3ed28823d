"""Rules: who is told what when an event rises or a label opens or closes."""

from __future__ import annotations

from terrazzo.api.operations.entities.actions import EntityActions
from terrazzo.api.operations.entities.scripts import Switch
from terrazzo.metadata.definitions.rules import RULE

RULES = EntityActions(
    title="rule",
    name="rule",
    create="create_rule",
    update="update_rule",
    delete="delete_rule",
    get_item="get_rule_item",
    get_list="get_rule_list",
    entity=RULE,
    repository=lambda services: services.entities.rules,
)

OPERATIONS = (*RULES.operations(), *Switch(RULES, start="start_rule", stop="stop_rule").operations())
