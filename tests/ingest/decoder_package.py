"""Makes packages with decoders as pip would install them: a module and its entry points, in a folder for PYTHONPATH."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "decoders.md"


def install(folder: Path, module: str, source: str, names: Mapping[str, str]) -> Path:
    """Installs a module with entry points (name to function) into a folder, which is returned."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{function}\n" for name, function in names.items()]
    (about / "entry_points.txt").write_text("".join(["[terrazzo.decoders]\n", *lines]))
    return folder


def documented() -> tuple[str, str]:
    """The module of the document's example, and its ``pyproject.toml``."""
    text = DOCUMENT.read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (project,) = [each for each in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[project]" in each]
    return source, project
