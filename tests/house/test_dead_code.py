"""What the search for dead code finds, and what it leaves alone."""

from __future__ import annotations

import pytest
from dead_code import dead, dead_product, read_source

OTHER = "from a import used, Kept\nused()\nKept().asked\nimport a\na.read\n"


def found(text: str, other: str = OTHER) -> list[str]:
    return [f"{one.kind} {one.name}" for one in dead([read_source("a.py", text), read_source("b.py", other)])]


def test_the_product_names_all_that_it_defines() -> None:
    assert dead_product() == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def lost(): pass", ["function lost"]),
        ("async def lost(): pass", ["function lost"]),
        ("def lost(): return lost()", ["function lost"]),
        ("class Lost: pass", ["class Lost"]),
        ("class Lost:\n def make(self) -> 'Lost': return Lost()", ["class Lost", "method make"]),
        ("LOST = 1", ["constant LOST"]),
        ("LOST: int = 1", ["constant LOST"]),
        ("class Kept:\n def lost(self): self.lost()", ["method lost"]),
        ("class Kept:\n @property\n def lost(self): return 1", ["method lost"]),
    ],
)
def test_what_nobody_names_is_found(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "def used(): pass",
        "def read(): pass",
        "def inner(): pass\ninner()",
        "class Kept:\n def asked(self): pass",
        "class Kept:\n def spoken(self): pass\ngetattr(Kept(), 'spoken')",
        "class Kept:\n def __len__(self): return 1",
        "@app.command()\ndef start(): pass",
        "@pytest.fixture\ndef rig(): pass",
        "class Kept:\n field: int = 0",
    ],
)
def test_what_is_named_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_a_package_that_passes_a_name_on_does_not_use_it() -> None:
    package = read_source("p/__init__.py", "from p.a import Lost\n__all__ = ['Lost']")
    lost = read_source("p/a.py", "class Lost: pass")
    assert [one.name for one in dead([lost, package])] == ["Lost"]
    assert dead([lost, package, read_source("p/b.py", "from p import Lost")]) == []
