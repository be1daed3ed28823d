"""Regular expressions as InfluxDB takes them (Go's, which are RE2's): matched in time linear in the text."""

from __future__ import annotations

from functools import lru_cache

from terrazzo.influxql.errors import SyntaxFault

MOST_PATTERN = 4_096
_MEMORY_BYTES = 1 << 20  # of one compiled expression


class Pattern:
    """One regular expression.

    Raises:
        SyntaxFault: it is none, or too long.
    """

    __slots__ = ("_found", "text")

    def __init__(self, text: str) -> None:
        import re2  # its library takes a while to load

        if len(text) > MOST_PATTERN:
            raise SyntaxFault(f"a regular expression has more than {MOST_PATTERN} characters")
        self.text = text
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY_BYTES
        try:
            compiled = re2.compile(text, options)
        except re2.error as error:
            raise SyntaxFault(f"error parsing regexp: {error}: `{text[:200]}`") from None
        self._found = lru_cache(maxsize=1024)(lambda name: compiled.search(name) is not None)

    def finds(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        return self._found(text)
