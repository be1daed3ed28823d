"""What msgspec says of a request, as the platform says it."""

from __future__ import annotations

import re

from terrazzo.reasons import Said, say, told_by


def schema_fault(error: BaseException, *, quotes: bool = True) -> tuple[str, str]:
    """msgspec's error as (path below the field, reason); what a field's own check has said keeps its code.

    ``quotes``: whether the names of fields stand in backticks, as msgspec writes them.
    """
    message, _, path = str(error).partition(" - at `$")
    cause = error.__cause__
    own = "" if cause is None else told_by(cause)
    if isinstance(own, Said):
        return path.rstrip("`"), own
    if message.startswith("Expected"):
        message = message.replace(" | ", " or ")
        quotes = False
    if not quotes:
        message = message.replace("`", "")
    return path.rstrip("`"), _worded(message[:1].lower() + message[1:])


def _worded(message: str) -> str:
    """The platform's sentence for it, which reads the same; the message where there is none."""
    if found := re.fullmatch(r"expected (.+), got (.+)", message, re.DOTALL):
        return say("expected_kind_got", expected=found[1], got=found[2])
    if found := re.fullmatch(r"expected (\w+)( of length)? (>=|<=|>|<) (\S+)", message):
        return _compared(found[1], bool(found[2]), found[3], _number(found[4])) or message
    if found := re.fullmatch(r"expected (\w+) matching regex (.+)", message, re.DOTALL):
        return say("expected_pattern", kind=found[1], pattern=found[2])
    if found := re.fullmatch(r"invalid enum value (.+)", message, re.DOTALL):
        return say("enum_value", got=found[1])
    if found := re.fullmatch(r"object missing required field (.+)", message, re.DOTALL):
        return say("missing_field", name=found[1])
    if found := re.fullmatch(r"object contains unknown field (.+)", message, re.DOTALL):
        return say("contains_unknown_field", name=found[1])
    return message


def _compared(kind: str, is_length: bool, sign: str, limit: str | int) -> str | None:
    match is_length, sign:
        case True, ">=":
            return say("expected_length_least", kind=kind, least=limit)
        case True, "<=":
            return say("expected_length_most", kind=kind, most=limit)
        case False, ">=":
            return say("expected_least", kind=kind, least=limit)
        case False, "<=":
            return say("expected_most", kind=kind, most=limit)
        case False, ">":
            return say("expected_above", kind=kind, limit=limit)
        case False, "<":
            return say("expected_below", kind=kind, limit=limit)
    return None


def _number(text: str) -> str | int:
    """A whole number as such; others stay as they are written, which is how the sentence has them."""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text
