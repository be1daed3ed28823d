"""The sentences of all areas, by code."""

from __future__ import annotations

from terrazzo.reasons import access, files, payloads, records, requests, tables, work

CATALOGUE: dict[str, str] = {
    **access.SENTENCES,
    **requests.SENTENCES,
    **files.SENTENCES,
    **records.SENTENCES,
    **tables.SENTENCES,
    **payloads.SENTENCES,
    **work.SENTENCES,
}
"""Code to English sentence; ``{name}`` stands for a parameter, as ``str.format`` has it."""
