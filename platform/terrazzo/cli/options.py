"""Options that commands share, and the configuration made of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from terrazzo.config.sections import Config, load_config

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Configuration in TOML.", show_default=False)
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="The data folder, instead of data.dir.", show_default=False),
]

HttpPortOption = Annotated[
    int | None, typer.Option(help="Instead of http.port; 0: any free one.", min=0, max=65_535, show_default=False)
]
MqttPortOption = Annotated[
    int | None, typer.Option(help="Instead of mqtt.port; 0: any free one.", min=0, max=65_535, show_default=False)
]
RoleOption = Annotated[str, typer.Option(help="all or front, instead of cluster.role.", show_default=False)]

COMPLETION_VARIABLE = "_TERRAZZO_COMPLETE"
"""By which a shell asks for words, however the program was started."""

JsonOption = Annotated[bool, typer.Option("--json", help="As JSON instead of text.")]


def read_config(config: Path | None, data: Path | None) -> Config:
    """The configuration from file and environment, overridden by the options of the command line.

    Raises:
        ConfigError: naming the key.
    """
    loaded = load_config(config, os.environ)
    return loaded if data is None else loaded.with_data_dir(data)
