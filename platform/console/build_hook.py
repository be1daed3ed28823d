"""What hatch runs before it makes a wheel, an sdist or an editable install: the console is built first.

An sdist carries what was built, so that a wheel made of it needs no Node.js.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the console, unless ``TERRAZZO_CONSOLE=0`` or it comes with the sources."""

    def dependencies(self) -> list[str]:
        """Node.js as a package, where the machine has none that is new enough."""
        builder = _builder(Path(self.root))
        needs_none = self._is_left_out(builder) or builder.find_tools() is not None
        return [] if needs_none else [builder.WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds."""
        builder = _builder(Path(self.root))
        if self._is_left_out(builder):
            return
        try:
            builder.build(only_if_stale=True, for_release=version != "editable")
        except builder.BuildError as error:
            raise SystemExit(str(error)) from None

    def _is_left_out(self, builder: ModuleType) -> bool:
        comes_built = Path(self.root, "PKG-INFO").exists() and (builder.BUILT / "index.html").exists()
        return os.environ.get("TERRAZZO_CONSOLE") == "0" or comes_built


def _builder(root: Path) -> ModuleType:
    """``build.py``, which is no package's module."""
    spec = importlib.util.spec_from_file_location("console_build", root / "platform" / "console" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
