"""Alembic migrations of the metadata, applied at start, all that are missing in one transaction."""

REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0016",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
    "0025",
    "0026",
    "0029",
    "0032",
)
"""All revisions, oldest first; the last is what this version of the platform needs."""
