"""The server does without SQLAlchemy's ORM and the dialect of the other database, and who asks for them gets them."""

from __future__ import annotations

import subprocess
import sys

_ASKED = """
import sys
from terrazzo.database.without_orm import leave_out_orm
assert "sqlalchemy" not in sys.modules
assert leave_out_orm()
assert not leave_out_orm(), "once"
import terrazzo.runtime.serve
unwanted = {"sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "asn1crypto", "scramp"}
assert not unwanted & sys.modules.keys(), unwanted & sys.modules.keys()

import sqlalchemy.ext.asyncio as package
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.ext.asyncio.engine import AsyncConnection as known
assert AsyncSession.__module__ == "sqlalchemy.ext.asyncio.session" and "sqlalchemy.orm" in sys.modules
assert AsyncConnection is known
try:
    package.nothing
except AttributeError as error:
    assert "nothing" in str(error)
else:
    raise AssertionError("a name that it doesn't have")
"""
_COMMANDS = """
import sys
from terrazzo.cli import make_app
make_app()
assert "sqlalchemy" not in sys.modules
"""


def _run(code: str) -> None:
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr[-3_000:]


def test_the_orm_is_loaded_for_those_alone_who_ask_for_it():
    _run(_ASKED)


def test_the_command_line_is_there_without_the_database():
    _run(_COMMANDS)
