"""``InfluxSettings``: the server, the database and the credentials."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class InfluxSettings:
    """One database of one server.

    1.x: ``database``, and ``username`` with ``password`` where the server asks. 2.x: ``token``, ``org``, ``bucket``
    (``database`` names its mapping, the bucket's name by default). 3: ``token`` and ``database``.
    """

    url: str
    token: str = field(default="", repr=False)
    org: str = ""
    bucket: str = ""
    database: str = ""
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def database_name(self) -> str:
        """What ``db=`` says: the database, else the bucket, else ``terrazzo``."""
        return self.database or self.bucket or "terrazzo"
