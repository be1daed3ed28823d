"""Each parser of foreign input returns a value or raises what it declares, whatever it is given."""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

import pytest
from kept_inputs import given_to, keyed, read_kept
from parser_kinds import Parser
from parser_table import PARSERS
from parsers_of_formats import ALSO_FUZZED

from length import rounds


def outcome(parser: Parser[Any], given: Any) -> Exception | None:
    """What it raised and had not declared."""
    try:
        parser.run(given)
    except parser.raises:
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return error
    return None


@pytest.mark.parametrize("parser", [*PARSERS, *ALSO_FUZZED], ids=lambda parser: parser.name)
def test_it_returns_or_refuses(parser: Parser[Any]) -> None:
    random = Random(zlib.crc32(parser.name.encode()))
    inputs = [*parser.samples, *(make(size) for make in parser.worst for size in (0, 1, 7, 300, 5_000))]
    inputs += [parser.fuzzed(random) for _ in range(rounds(300, 20_000))]
    for given in inputs:
        error = outcome(parser, given)
        assert error is None, f"{given!r:.300}: {error!r:.300}"


@pytest.mark.parametrize(("key", "kept"), read_kept().items(), ids=lambda each: each if isinstance(each, str) else "")
def test_what_the_fuzzer_found(key: str, kept: list[bytes]) -> None:
    parser = keyed()[key]
    for data in kept:
        error = outcome(parser, given_to(parser, data))
        assert error is None, f"{data!r:.300}: {error!r:.300}"


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_its_samples_reach_it(parser: Parser[Any]) -> None:
    """A sample that nothing can be made of would fuzz the way to the parser alone."""
    assert parser.samples
    assert len({type(sample) for sample in parser.samples}) == 1
