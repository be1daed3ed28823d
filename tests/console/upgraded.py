"""A platform whose console is another build, as after an upgrade."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from console_build import builder

from running import Platform


class UpgradedPlatform(Platform):
    """The platform with the console of a folder of its own."""

    program = (
        "-c",
        "import os, sys; from pathlib import Path; from terrazzo.api.transports.console import files; "
        "files._built = lambda: Path(os.environ['CONSOLE']); from terrazzo.cli import main; main()",
    )


def next_console(folder: Path) -> Path:
    """The console as another build would be: other names for all that is loaded, in all files."""
    made = Path(shutil.copytree(builder().BUILT, folder / "next"))
    texts = {file: file.read_text(encoding="utf-8") for file in made.iterdir() if file.suffix in (".js", ".html")}
    hashes = {file.stem.rpartition("-")[2] for file in made.iterdir() if file.suffix in (".js", ".css")}
    for file, text in texts.items():
        changed = re.sub("|".join(hashes), lambda match: match[0][::-1], text)
        file.write_text(re.sub(r'(terrazzo-build" content=")\w+', r"\g<1>feedfeedfeed", changed), encoding="utf-8")
    for file in list(made.iterdir()):
        stem, _, digest = file.stem.rpartition("-")
        if digest in hashes:
            file.rename(file.with_name(f"{stem}-{digest[::-1]}{file.suffix}"))
    return made
