"""Makes what rules do besides telling of events: the watch over terminals and objects, and the commands they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from terrazzo.commands.pusher import Pusher
from terrazzo.config.sections import Config
from terrazzo.domain.happened import Happened
from terrazzo.rules.commander import RuleCommander
from terrazzo.rules.watch import ConditionWatch
from terrazzo.runtime.assembly.metadata import Metadata
from terrazzo.runtime.assembly.objects import Objects
from terrazzo.runtime.assembly.terminal_messaging import TerminalMessaging
from terrazzo.runtime.lifetime import Lifetime


class Rules(msgspec.Struct, frozen=True):
    """The watch and the commander; ``start`` when the platform listens."""

    watch: ConditionWatch
    commander: RuleCommander

    async def start(self, lifetime: Lifetime) -> None:
        """Starts both; they are stopped with the platform."""
        away_since_us = await self.watch.start()
        lifetime.push_async_callback(self.watch.stop)
        await self.commander.start(away_since_us)
        lifetime.push_async_callback(self.commander.stop)


def new_rules(
    config: Config,
    lifetime: Lifetime,
    *,
    metadata: Metadata,
    objects: Objects,
    messaging: TerminalMessaging,
    clock: Callable[[], int],
) -> Rules:
    """Both, listening to presence, refusals, events and records; not started yet."""
    notifier, own, limits = objects.notifier, metadata.quotas.own, config.limits
    commander = RuleCommander(
        notifier.active_rules,
        metadata.database,
        Pusher(messaging.commands, metadata.entities, metadata.registry),
        tasks=lifetime.tasks,
        zone=config.zone,
        of_company=own.of("rule_commands_per_hour", limits.company_rule_commands_per_hour),
        on_notices=notifier.wake,
        clock=clock,
    )

    def wake() -> None:
        notifier.wake()
        commander.wake()

    watch = ConditionWatch(
        notifier.active_rules,
        metadata.database,
        metadata.registry,
        messaging.bus,
        on_notices=wake,
        tasks=lifetime.tasks,
        most_of_company=own.of("rule_conditions", limits.company_rule_conditions),
        clock=clock,
    )
    _listen(watch, commander, metadata, objects, messaging)
    return Rules(watch, commander)


def _listen(
    watch: ConditionWatch,
    commander: RuleCommander,
    metadata: Metadata,
    objects: Objects,
    messaging: TerminalMessaging,
) -> None:
    def on_happened(_happened: Sequence[Happened]) -> None:
        commander.wake()

    entities = metadata.entities
    entities.rules.changes.listen(watch.on_rule)  # after the notifier, which has the rules that are started
    entities.rules.changes.listen(commander.on_rule)
    entities.terminals.changes.listen(watch.on_terminal_record)
    entities.objects.changes.listen(watch.on_object)
    entities.group_maps.changes.listen(watch.on_group)
    metadata.registry.terminal_changes.listen(watch.on_terminal)
    metadata.registry.service_changes.listen(watch.on_service)
    watch.follow(messaging.presence.changes)
    messaging.refusals.changes.listen(watch.on_refusals, wanted=lambda: watch.is_wanted)
    objects.mapper.effect_queue.happened.listen(on_happened)
