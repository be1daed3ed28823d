"""SQLAlchemy's connections for asyncio without its ORM, which they load and the platform has no use for.

``sqlalchemy.ext.asyncio`` imports sessions, and with them mappers, queries and relationships: 7 MB, and a tenth of a
start. Whoever asks the package for one of those still gets it: they are loaded then.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

_PACKAGE = "sqlalchemy.ext.asyncio"
_USED = ("AsyncConnection", "AsyncEngine", "create_async_engine")


def leave_out_orm() -> bool:
    """Makes ``sqlalchemy.ext.asyncio`` with what is used of it; False where it was loaded whole before, and stays so.

    To be called before anything imports it.
    """
    if _PACKAGE in sys.modules:
        return False
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.loader is None:
        return False
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    try:
        engine = importlib.import_module(f"{_PACKAGE}.engine")
        concurrency: Any = importlib.import_module("sqlalchemy.util.concurrency")
        concurrency._concurrency_shim._initialize()
    except (ImportError, AttributeError):  # another version of it: whole, then
        del sys.modules[_PACKAGE]
        return False
    for name in _USED:
        setattr(package, name, getattr(engine, name))
    package.__dict__["__getattr__"] = _loading_all(package)
    importlib.import_module("sqlalchemy.ext").__dict__["asyncio"] = package
    return True


def _loading_all(package: ModuleType) -> Any:
    """What ``package`` does when it is asked for a name that it doesn't have: it is loaded whole, once."""

    def get(name: str) -> Any:
        spec = package.__spec__
        if name.startswith("__") or spec is None or spec.loader is None or "__getattr__" not in package.__dict__:
            raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}")
        del package.__dict__["__getattr__"]
        spec.loader.exec_module(package)
        return getattr(package, name)

    return get
