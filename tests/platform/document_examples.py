"""The examples of README.md and docs/*.md, what was run of them, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = {
    "architecture.md": "drawings, which tests/house/test_layers.py makes",
    "mapping.md": "tests/mapping/test_mapping_documented.py",
    "tutorial.md": "tests/platform/test_platform_tutorial.py",
}
NOT_RUN = {
    ("assistants.md", "pip install"): "installs from the registry",
    ("assistants.md", '{\n  "mcpServers": {\n    "terrazzo": {\n      "type": "http"'): (
        "is of another program: tests/cli/test_cli_mcp.py asks that address"
    ),
    ("beside-a-broker.md", "authentication ="): "is EMQX's: tests/api/test_api_broker_questions.py sends what it asks",
    ("beside-a-broker.md", "mqtt.listeners"): "is RabbitMQ's: tests/rabbitmq_server.py starts it with this",
    ("broker.md", "# who names no user"): "no program: tests/broker/test_broker_access_files.py reads such files",
    ("broker.md", "stream {"): "needs nginx with TLS: tests/transports/test_transport_behind_nginx.py",
    ("commands.md", "<http.public_url>"): "the form of an address",
    ("decoders.md", "[project]"): "installs a package: tests/ingest/decoder_package.py does it",
    ("gateway.md", "const buffer"): "of a browser: tests/api/test_api_columns.py reads the same bytes",
    ("gateway.md", '{"resp": "live", "subscription": 1, "gap"'): "a frame: tests/live/test_live_subscribe.py",
    ("gateway.md", "schemathesis run"): "takes minutes, and deletes: tests/contract/test_contract_schemathesis.py",
    ("gateway.md", '{"resp": "live", "subscription": 1, "end"'): "a frame: tests/live/test_live_subscribe.py",
    ("grafana.md", "apiVersion"): "is for Grafana, which is not at hand",
    ("install.md", "docker build"): "needs Docker, and a registry of images",
    ("install.md", "install -D"): "needs root and systemd: tests/packaging/test_packaging_services.py",
    ("install.md", "python3 -m venv"): "installs from the registry, into /opt",
    ("messenger.md", "curl"): "needs a mail server: tests/messenger",
    ("migrating.md", "terrazzo migrate --config a.toml"): "needs a cluster: tests/backup/test_migrate_cluster.py",
    ("migrating.md", "terrazzo migrate --config old.toml --data /srv/terrazzo --to-config a"): (
        "needs a cluster: tests/backup/test_migrate_cluster.py"
    ),
    ("migrating.md", "terrazzo migrate --config old.toml --data /srv/terrazzo --to-config new"): (
        "needs PostgreSQL and InfluxDB: tests/backup/test_migrate_drill.py"
    ),
    ("README.md", "make run"): "installs from the registry; .ci/run does both",
    ("README.md", "pip install ."): "installs from the registry",
    ("scaling.md", "[cluster]\nnode"): "keys of a node, to be filled in",
    ("scaling.md", "[cluster]\nrole"): "keys of a front, to be filled in",
    ("scaling.md", "[stream]"): "keys of several nodes, to be filled in",
    ("scaling.md", "max_payload"): "of another program's configuration",
    ("scaling.md", "terminals --MQTT--> front f1"): "a drawing of fronts",
    ("scaling.md", "the log: NATS"): "a drawing",
    ("simulators.md", "HKDF-SHA256"): "a formula",
    ("terminals.md", "openssl"): "tests/terminals/test_terminals_certificates.py runs it",
    ("troubleshooting.md", "$ terrazzo"): "shows a past: tests/diagnostics/test_diagnostics_reasons.py",
    ("users.md", "# a second factor"): "needs codes of a second factor: tests/api/test_api_second_factor.py",
    ("users.md", "# codes by mail"): "needs a mail server: tests/api/test_api_passwords.py",
}
"""Examples that aren't run, by file and beginning, and why or where else they are.

A reason is another machine or program, a network, root, that something would be installed, or a test of its own.
"""

_FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)(?:\n* {4}.*\n)*")


class Example(NamedTuple):
    """A block of code, ``indented`` where it has no fence; ``key`` names it: file and how it begins."""

    file: str
    language: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.file}: {self.text.strip()[:28]}"


def read_examples(file: str, text: str) -> list[Example]:
    """A page's fenced blocks, then the indented ones."""
    found = [Example(file, *match.groups()) for match in _FENCED.finditer(text)]
    outside = _FENCED.sub("fenced", text)
    return found + [Example(file, "indented", match[0]) for match in _INDENTED.finditer(outside)]


def examples() -> list[Example]:
    """All blocks but those of files that other tests run, and of ``gateway.md``'s list of all actions, likewise."""
    pages = [file for file in FILES if file.name not in ELSEWHERE]
    texts = {file.name: file.read_text(encoding="utf-8").split("\n## Examples\n")[0] for file in pages}
    return [each for name, text in texts.items() for each in read_examples(name, text)]


EXAMPLES = examples()


def excuses(example: Example) -> list[tuple[str, str]]:
    """The entries of ``NOT_RUN`` that are about an example."""
    text = example.text.strip()
    return [(file, begin) for file, begin in NOT_RUN if file == example.file and text.startswith(begin)]


class Ledger:
    """What was run, noted once it went well; what was skipped, because a program isn't installed."""

    def __init__(self) -> None:
        self.ran: set[Example] = set()
        self.skipped: set[Example] = set()

    @contextmanager
    def running(self, example: Example) -> Iterator[Example]:
        """Notes the example when the block ends without an error."""
        try:
            yield example
        except pytest.skip.Exception:
            self.skipped.add(example)
            raise
        self.ran.add(example)

    def faults(self, among: Iterable[Example]) -> list[str]:
        """Examples that were neither run nor excused, and those that were run though they are excused."""
        found = []
        for each in among:
            if each in self.ran and excuses(each):
                found.append(f"{each.key!r} is run: take it out of NOT_RUN")
            elif each not in self.ran | self.skipped and not excuses(each):
                found.append(f"{each.key!r}: run it, or say in NOT_RUN why not")
        return found


LEDGER = Ledger()


def only(file: str, beginning: str) -> Example:
    """The one example of a file that begins so."""
    (found,) = [each for each in EXAMPLES if each.file == file and each.text.lstrip().startswith(beginning)]
    return found


@contextmanager
def running(file: str, beginning: str) -> Iterator[Example]:
    """The one example of a file that begins so; noted as run when the block ends without an error."""
    with LEDGER.running(only(file, beginning)) as found:
        yield found
