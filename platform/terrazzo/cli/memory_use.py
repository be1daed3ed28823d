"""Whose memory it is on a platform that runs, in words, from what its ``/metrics`` say."""

from __future__ import annotations

from typing import NamedTuple

MIB = 2**20
_MOST_NAMED = 5  # companies and kinds


class MemoryUse(NamedTuple):
    """``is_tight``: less than a quarter of the ceiling is free, so that who has its share gets no more."""

    ceiling: float
    is_tight: bool
    companies: list[tuple[str, float]]  # those that have most first
    kinds: list[tuple[str, float]]

    def __str__(self) -> str:
        """One line."""
        total = sum(size for _, size in self.kinds)
        companies = ", ".join(f"{name} {_mib(size)}" for name, size in self.companies[:_MOST_NAMED])
        kinds = ", ".join(f"{name} {_mib(size)}" for name, size in self.kinds[:_MOST_NAMED] if size)
        state = "it is tight: who has its share gets no more" if self.is_tight else "not tight"
        told = f"{_mib(total)} of {_mib(self.ceiling)} in use, {state}"
        return f"{told}; companies: {companies or 'none'}" + (f"; of these {kinds}" if kinds else "")


def memory_use_of(metrics: str) -> MemoryUse | None:
    """From the text of ``/metrics``; None where it says nothing of memory."""
    from prometheus_client.parser import text_string_to_metric_families

    samples = [each for family in text_string_to_metric_families(metrics) for each in family.samples]
    single = {each.name: each.value for each in samples if not each.labels}
    if "terrazzo_memory_ceiling_bytes" not in single:
        return None

    def largest(name: str, label: str) -> list[tuple[str, float]]:
        found = [(each.labels[label], each.value) for each in samples if each.name == name]
        return sorted(found, key=lambda each: -each[1])

    companies = [
        ("the platform" if name == "0" else name, size)
        for name, size in largest("terrazzo_memory_company_bytes", "company")
    ]
    return MemoryUse(
        single["terrazzo_memory_ceiling_bytes"],
        bool(single.get("terrazzo_memory_tight")),
        companies,
        largest("terrazzo_memory_bytes", "kind"),
    )


def _mib(size: float) -> str:
    return f"{size / MIB:,.1f} MiB" if size < 10 * MIB else f"{size / MIB:,.0f} MiB"
