"""Packages that only some settings need, each an extra: looked for before a start, and at their use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from terrazzo.config.backup import S3
from terrazzo.config.sections import Config, ConfigError


class Extra(NamedTuple):
    """What one setting needs beside the packages that are always there.

    Attributes:
        key: of the setting.
        needs: who needs what, as it follows the key.
        name: of the extra, as pip takes it.
        modules: whose presence shows that it is installed.
        is_needed: whether a configuration needs it.
        of_fronts: whether a front needs it as well.
    """

    key: str
    needs: str
    name: str
    modules: tuple[str, ...]
    is_needed: Callable[[Config], bool]
    of_fronts: bool = False

    @property
    def advice(self) -> str:
        """How to install it."""
        return f"pip install 'terrazzo[{self.name}]'"

    def is_missing(self) -> bool:
        """Whether one of its modules can't be found; none is loaded for that."""
        return not all(map(_is_there, self.modules))

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Imports of the block need it.

        Raises:
            ConfigError: it is not installed; names the key and says how to install it.
        """
        try:
            yield
        except ImportError:
            raise ConfigError(f"{self.key}: {self.needs}: {self.advice}") from None


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a package around it is not there
        return False


CLUSTER = Extra(
    "stream.kind",
    "jetstream needs nats-py",
    "cluster",
    ("nats",),
    lambda config: config.stream.kind == "jetstream",
    of_fronts=True,
)
POSTGRESQL = Extra(
    "database.url",
    "PostgreSQL needs asyncpg",
    "postgresql",
    ("asyncpg",),
    lambda config: config.database.url.startswith("postgres"),
)
S3_TARGET = Extra(
    "backup.target", "s3:// needs boto3", "s3", ("boto3",), lambda config: config.backup.target.startswith(S3)
)
TRACING = Extra(
    "tracing.endpoint",
    "needs OpenTelemetry",
    "otel",
    ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
    lambda config: bool(config.tracing.endpoint),
)
EXTRAS = (CLUSTER, POSTGRESQL, S3_TARGET, TRACING)


def missing_extras(config: Config) -> list[Extra]:
    """The extras that a start with this configuration needs, and that are not installed."""
    is_front = config.cluster.role == "front"
    return [
        each for each in EXTRAS if (each.of_fronts or not is_front) and each.is_needed(config) and each.is_missing()
    ]
