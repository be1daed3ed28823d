"""Rules: who is told what when an event rises or a label opens or closes."""

from __future__ import annotations

from terrazzo.api.operations.entities.actions import EntityActions
from terrazzo.api.operations.entities.scripts import Switch
from terrazzo.metadata.definitions.rules import RULE

RULES = EntityActions(
    name="rule",
    title="rule",
    entity=RULE,
    repository=lambda services: services.entities.rules,
)

OPERATIONS = (*RULES.operations(), *Switch(RULES).operations())
