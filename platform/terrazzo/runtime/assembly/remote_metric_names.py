"""The metrics of what other brokers ask, each written out once, as in ``metric_names``."""

from __future__ import annotations

from terrazzo.runtime.assembly.metric_names import Figure

REMOTE_ACCESS = {
    "terrazzo_remote_logins_allowed_total": Figure("logins_allowed", "Logins at other brokers that were allowed"),
    "terrazzo_remote_logins_denied_total": Figure("logins_denied", "Logins at other brokers that were denied"),
    "terrazzo_remote_topics_allowed_total": Figure("topics_allowed", "Topics at other brokers that were allowed"),
    "terrazzo_remote_topics_denied_total": Figure("topics_denied", "Topics at other brokers that were denied"),
    "terrazzo_remote_askers_refused_total": Figure(
        "askers_refused", "Questions about logins and topics from whoever may not ask"
    ),
    "terrazzo_remote_malformed_total": Figure(
        "malformed", "Questions of other brokers that could not be read, and were denied"
    ),
}
