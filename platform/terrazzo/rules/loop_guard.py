"""The guard against rules that answer to what they have caused themselves, and against floods. Pure.

Nobody can know what has caused an event. What happens on an object within ``loop_s`` after the rule has commanded it
may be its own doing, and gets no command; where a rule commands objects of its own choice, so may all that it hears of.
"""

from __future__ import annotations

from collections.abc import Callable

from terrazzo.metadata.company_limits import Limit
from terrazzo.rules.hourly import HourlyCounts
from terrazzo.rules.rule import Rule


class LoopGuard:
    """Remembers when rules gave commands. Times in UTC microseconds.

    Args:
        of_company: how many commands the rules of a company may give within an hour, by its id.
    """

    def __init__(self, of_company: Callable[[int], Limit]) -> None:
        self._of_company = of_company
        self._by_rule, self._by_company = HourlyCounts(), HourlyCounts()
        self._last: dict[tuple[int, int], int] = {}  # by rule and object, 0: any

    def refusal(self, rule: Rule, cause_id: int, noted_us: int, now: int) -> str:
        """Why a command may not be given; empty: it may.

        Args:
            cause_id: the object that it happened on; 0: none.
            noted_us: when it happened.
        """
        last_us = self._last.get((rule.id, _guarded(rule, cause_id)))
        if not rule.runs and last_us is not None and last_us < noted_us <= last_us + rule.loop_s * 1_000_000:
            return f"what it answers to came within {rule.loop_s} s after its last command (loop_s)"
        if self._by_rule.free_us(rule.id, rule.commands_per_hour, now) > now:
            return f"it has given {rule.commands_per_hour:,} commands within an hour (commands_per_hour)"
        limit = self._of_company(rule.company_id)
        if self._by_company.free_us(rule.company_id, limit.most, now) > now:
            return f"rules of its company have given {limit.most:,} commands within an hour ({limit.key})"
        return ""

    def note(self, rule: Rule, cause_id: int, now: int) -> None:
        """A rule has given a command."""
        self._last.pop((rule.id, _guarded(rule, cause_id)), None)
        self._last[rule.id, _guarded(rule, cause_id)] = now
        self._by_rule.note(rule.id, now)
        self._by_company.note(rule.company_id, now)
        self._forget(now)

    def _forget(self, now: int) -> None:
        """Forgets what no ``loop_s`` reaches back to."""
        while self._last:
            oldest = next(iter(self._last))
            if self._last[oldest] > now - LONGEST_US:
                break
            del self._last[oldest]


LONGEST_US = 86_400 * 1_000_000
"""As far back the guard has to remember: the longest ``loop_s``."""


def _guarded(rule: Rule, cause_id: int) -> int:
    return 0 if rule.command_objects else cause_id
