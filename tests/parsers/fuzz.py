"""``make fuzz``: a coverage-guided fuzzer (atheris) over each parser of the table, one process each.

What crashes or takes longer than ten seconds is put into ``kept_inputs.json``, whose inputs are cases of the ordinary
run; ``--keep`` puts the smallest inputs that reach new code there too.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WORK = HERE.parents[1] / "build" / "fuzz"
_LONGEST, _MOST_KEPT = 256, 6  # bytes of an input that is kept, and how many of a parser
_INPUT_S, _MEMORY_MIB = 10, 3_000
_NICE = 19

sys.path[:0] = [str(HERE), str(HERE.parent)]


def main() -> int:
    """Fuzzes what is asked for; 1 where something crashed, 2 where the fuzzer isn't there."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=60, help="for each parser")
    options.add_argument("--only", default="", help="parsers whose name has one of these in it, with commas between")
    options.add_argument("--keep", action="store_true", help="keep what reaches new code")
    given = options.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: it has wheels for CPython 3.11 to 3.13 on Linux (pip install '.[fuzz]')")
        return 2
    return fuzz(given.seconds, given.only, keep=given.keep)


def fuzz(seconds: int, only: str, *, keep: bool) -> int:
    """Fuzzes one parser after another."""
    from kept_inputs import keyed, read_kept, write_kept

    os.nice(max(0, _NICE - os.nice(0)))
    kept, crashed = read_kept(), 0
    chosen = {key: parser for key, parser in keyed().items() if any(each in key for each in only.split(","))}
    if not chosen:
        print(f"no parser has {only!r} in its name")
        return 2
    for number, key in enumerate(chosen, 1):
        samples = [each if isinstance(each, bytes) else each.encode("utf-8", "replace") for each in chosen[key].samples]
        modules = sorted({name.partition(":")[0] for name in chosen[key].covers})
        status, said, found = run(key, modules, [*samples, *kept.get(key, [])], seconds)
        print(f"{number}/{len(chosen)} {key}: {summary(said)}", flush=True)
        if status:
            crashed += 1
            print(said[-3_000:])
        new = [each.read_bytes() for each in sorted(found.glob("crash-*")) + sorted(found.glob("timeout-*"))]
        kept[key] = [*new, *(each for each in kept.get(key, []) if each not in new)]
        if keep:
            kept[key] = with_smallest(kept[key], samples, found / "corpus")
        write_kept(kept)
    print(f"{crashed} of {len(chosen)} parsers crashed")
    return min(crashed, 1)


def run(key: str, modules: list[str], seeds: list[bytes], seconds: int) -> tuple[int, str, Path]:
    """One fuzzer; its status, what it said, and the folder of what it found."""
    folder = WORK / "".join(sign if sign.isalnum() else "-" for sign in key)
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for each in (*folder.glob("crash-*"), *folder.glob("timeout-*")):
        each.unlink()
    for number, seed in enumerate(seeds):
        (folder / "corpus" / f"seed-{number}").write_bytes(seed)
    environment = {**os.environ, "TERRAZZO_FUZZED": key, "TERRAZZO_FUZZED_MODULES": ",".join(modules)}
    limits = [f"-max_total_time={seconds}", f"-timeout={_INPUT_S}", f"-rss_limit_mb={_MEMORY_MIB}"]
    command = [sys.executable, str(HERE / "fuzz_child.py"), *limits, f"-artifact_prefix={folder}/", "-max_len=4096"]
    done = subprocess.run(
        [*command, str(folder / "corpus")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace"), folder


def summary(said: str) -> str:
    """The last line with figures."""
    lines = [line for line in said.splitlines() if re.match(r"#\d", line)]
    return " ".join(lines[-1].split()[:8]) if lines else said.strip()[-200:]


def with_smallest(kept: list[bytes], samples: list[bytes], corpus: Path) -> list[bytes]:
    """What is kept, and the smallest of a corpus."""
    found = sorted(
        {each.read_bytes() for each in corpus.iterdir()} - {*kept, *samples}, key=lambda each: (len(each), each)
    )
    spread = [each for each in found if 0 < len(each) <= _LONGEST]
    room = max(0, _MOST_KEPT - len(kept))
    step = max(1, len(spread) // room) if room else 1
    return [*kept, *spread[::step][:room]]


if __name__ == "__main__":
    sys.exit(main())
