"""All parsers of foreign input."""

from __future__ import annotations

from typing import Any

import parsers_of_connections
import parsers_of_devices
import parsers_of_fields
import parsers_of_influxql
import parsers_of_requests
import parsers_of_scripts
import parsers_of_stores
from parser_kinds import Parser

PARSERS: list[Parser[Any]] = [
    *parsers_of_scripts.PARSERS,
    *parsers_of_connections.PARSERS_OF_BYTES,
    *parsers_of_connections.PARSERS_OF_TEXT,
    *parsers_of_devices.PARSERS_OF_BYTES,
    *parsers_of_devices.PARSERS_OF_TEXT,
    *parsers_of_fields.PARSERS,
    *parsers_of_influxql.PARSERS,
    *parsers_of_requests.PARSERS_OF_TEXT,
    *parsers_of_requests.PARSERS_OF_BYTES,
    *parsers_of_stores.PARSERS_OF_BYTES,
    *parsers_of_stores.PARSERS_OF_TEXT,
]
