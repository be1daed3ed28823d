"""What reads like a parser and is none of foreign input, each with the reason."""

from __future__ import annotations

_OURS = "reads what the platform itself has written"
_OPERATOR = "reads what the operator has configured"
_CALLS = "reads from a store or a socket; what it reads goes through parsers that are in the table"

EXCUSED: dict[str, str] = {
    "terrazzo.analysis.results:decode_variables": _OURS,
    "terrazzo.analysis.results:read_summaries": _CALLS,
    "terrazzo.analysis.results:read_variables": _CALLS,
    "terrazzo.analysis.tally:decode_summary": _OURS,
    "terrazzo.api.kernel.fields:Parsed.parse": "is abstract",
    "terrazzo.api.operations.entities.types:read_type": "makes a type of a column's definition",
    "terrazzo.api.transports.docs_page:_read": "reads a file of the package",
    "terrazzo.cli.import_:_read": "reads a file of whoever runs the command",
    "terrazzo.cli.options:read_config": _OPERATOR,
    "terrazzo.cli.user:_read_password": _OPERATOR,
    "terrazzo.config.bridge:parse_url": _OPERATOR,
    "terrazzo.config.http:*": _OPERATOR,
    "terrazzo.config.messenger:parse_body": _OPERATOR,
    "terrazzo.config.sections:*": _OPERATOR,
    "terrazzo.config.values:_read_value": _OPERATOR,
    "terrazzo.crypto.key_file:read_key": _OURS,
    "terrazzo.database.database:_parse_url": _OPERATOR,
    "terrazzo.database.field:Field.parse": "goes through the parsers of its kinds, which are in the table",
    "terrazzo.database.field:_parse_integer": "checks a number's range",
    "terrazzo.database.field:_parse_reference": "checks a value's type",
    "terrazzo.database.pages:read_page": _CALLS,
    "terrazzo.expressions.parser:Parser.parse": "is what parse runs, which is in the table",
    "terrazzo.files.library:parse_types": _OPERATOR,
    "terrazzo.ingest.report_reader:*": "hands stored bodies to PayloadForm.read_array, which is in the table",
    "terrazzo.ingest.sealing:parse_private_key": "a key that was checked when it was saved",
    "terrazzo.live.sources:_decode": "reads bodies that were decoded when they were stored",
    "terrazzo.messenger.messenger:split": "sorts drafts by project",
    "terrazzo.metadata.repositories.campaigns:read_item": _OURS,
    "terrazzo.mosaic.body:parse_mosaic": _OURS,
    "terrazzo_adapters.bridge.receiver:*": "turns the library's message into ours; nothing is parsed",
    "terrazzo_adapters.columns.column:*": _OURS,
    "terrazzo_adapters.influxdb.queries:scan": _CALLS,
    "terrazzo_adapters.keyvalue.notes:read_notes": _OURS,
    "terrazzo_adapters.rocksdb.keys:parse_number": _OURS,
    "terrazzo_adapters.rocksdb.reads:scan": _CALLS,
    "terrazzo_broker.access.password_file:read_passwords": _OPERATOR,
    "terrazzo_broker.delivery.routing:split_raw": "cuts packets that our encoder has made",
    "terrazzo_broker.listeners.proxy_protocol:read_source": _CALLS,
    "terrazzo_broker.persistence.image:*": _OURS,
    "terrazzo_broker.persistence.records:*": _OURS,
}
