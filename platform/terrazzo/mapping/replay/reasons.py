"""Why replays failed and what they remark, as the journal has it; the console has Chinese words for each."""

from __future__ import annotations

TOO_MUCH_HAPPENED = "more than {most} events and labels happened: choose a shorter range"
REPORTS_KEEP_COMING = "reports keep coming to the range: try again when the terminals have sent what they kept"
NO_MAPPING = "the object has no mapping that is in force, or is not available"
CHANGED = "the object, its mapping or its retainers were changed meanwhile: replay it again"
NOT_KNOWN = "not known from the {days} days before the range: {codes}"
INTERRUPTED = "it was interrupted {times} times"
INTERNAL = "an internal error, which the log has"
REPLAY_REASONS = (TOO_MUCH_HAPPENED, REPORTS_KEEP_COMING, NO_MAPPING, CHANGED, NOT_KNOWN, INTERRUPTED, INTERNAL)
