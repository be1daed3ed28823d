"""Looks up known vulnerabilities of the installed packages with pip-audit, where its data can be reached.

Where it can't, it says so and leaves it at that: a network that is away is no fault of the code. A vulnerability is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

TIMEOUT_S = 120
OWN = "terrazzo"


def main() -> int:
    """The exit status: 1 where a package has a known vulnerability."""
    found = _audit()
    if found is None:
        return 0
    audited = [each for each in found if "vulns" in each]
    weak = [each for each in audited if each["vulns"]]
    for each in weak:
        for known in each["vulns"]:
            fixed = ", ".join(known["fix_versions"]) or "none yet"
            print(f"{each['name']} {each['version']}: {known['id']}, mended in {fixed}")
    missing = sum(each["name"] != OWN for each in found) - len(audited)
    if missing:
        print(
            f"pip-audit: {missing} of {missing + len(audited)} packages not looked up: its data can't be reached here"
        )
    return 1 if weak else 0


def _audit() -> list[dict[str, Any]] | None:
    """What pip-audit says of each package; None where it can say nothing."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        found: list[dict[str, Any]] = json.loads(finished.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        print("pip-audit: nothing was looked up: its data can't be reached here")
        return None
    return found


if __name__ == "__main__":
    sys.exit(main())
