"""The metrics of what screens ask for, each written out once, as in ``metric_names``."""

from __future__ import annotations

from terrazzo.runtime.assembly.metric_names import Figure

ATTENTION = {
    "terrazzo_attention_asked_total": Figure("asked", "Requests for what needs a person"),
    "terrazzo_attention_made_total": Figure("made", "Of these, those that were worked out, others were there"),
}
PRESENCE_LOG = {
    "terrazzo_presence_changes_total": Figure(
        "written", "Connections of terminals that began or ended, and were kept so"
    ),
    "terrazzo_presence_changes_lost_total": Figure("lost", "Of these, those not kept, because more waited than may"),
}

SERIES_USE = {
    "terrazzo_series_counts_total": Figure("counts", "How often the bytes of all time series were counted"),
    "terrazzo_series_count_seconds_total": Figure("count_seconds", "Time that this took, with its rests"),
    "terrazzo_series_full": Figure("full", "Companies whose terminals are not read: their series are full"),
    "terrazzo_series_filled_total": Figure("filled", "How often a company had as much of the disk as it may"),
}

ANSWERS = {
    "terrazzo_answers_too_large_total": Figure("too_large", "Answers refused by limits.answer_bytes"),
    "terrazzo_answers_untaken_total": Figure(
        "untaken", "Answers refused by limits.company_answer_bytes: others of the company were not taken yet"
    ),
}

REMEMBERED = {
    "terrazzo_answers_remembered_total": Figure(
        "hits", "Means, pages and newest values that were asked for, and were known"
    ),
    "terrazzo_answers_read_total": Figure(
        "misses", "Means, pages and newest values that were asked for, and had to be read"
    ),
}

API_KEYS = {"terrazzo_api_keys_refused_total": Figure("refused", "API keys that were shown and are no good")}

WALL_LINKS = {"terrazzo_wall_links_refused_total": Figure("refused", "Keys of wall links that reach nothing")}
