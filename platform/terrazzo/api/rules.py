"""Rules: who is told what when an event rises or a label opens or closes."""

from __future__ import annotations

from terrazzo.api.entities import EntityActions
from terrazzo.api.scripts import Switch
from terrazzo.metadata.rules import RULE

RULES = EntityActions(
    name="rule",
    title="rule",
    entity=RULE,
    repository=lambda services: services.entities.rules,
)

OPERATIONS = (*RULES.operations(), *Switch(RULES).operations())
