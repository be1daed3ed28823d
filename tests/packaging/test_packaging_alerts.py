"""The alert rules: valid, each fires when it should and not otherwise, each with its page in the runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from alert_cases import CASES, Case

from support import require_program

ROOT = Path(__file__).parents[2]
RULES = ROOT / "packaging" / "prometheus" / "alerts.yml"


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def names() -> list[str]:
    return [rule["alert"] for rule in rules()]


def promtool(*arguments: object) -> str:
    command = [require_program("promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_takes_rules_and_configuration():
    assert f"{len(names())} rules found" in promtool("check", "rules", RULES)
    promtool("check", "config", RULES.with_name("prometheus.yml"))


def test_each_fires_when_it_should_and_not_otherwise(tmp_path):
    for step in ("1m", "10m"):
        cases = [case for case in CASES if step_of(case) == step]
        document = {
            "rule_files": [str(RULES)],
            "evaluation_interval": step,
            "tests": [as_test(case) for case in cases],
        }
        (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
        promtool("test", "rules", tmp_path / "tests.yml")


def step_of(case: Case) -> str:
    """Between two values of a series: those that are about hours need no minutes."""
    return "10m" if case.at.endswith("h") else "1m"


def as_test(case: Case) -> dict[str, Any]:
    expression = f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}}) or vector(0)'
    return {
        "name": f"{case.alert} {'fires' if case.fires else 'is quiet'}",
        "interval": step_of(case),
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": case.at,
                "exp_samples": [{"labels": "{}", "value": int(case.fires)}],
            }
        ],
    }


def test_a_rule_that_never_fires_would_be_found(tmp_path):
    """The check itself: an alert that should fire and does not fails promtool."""
    wrong = next(case for case in CASES if case.fires)._replace(fires=False)
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [as_test(wrong)]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    with pytest.raises(AssertionError, match=wrong.alert):
        promtool("test", "rules", tmp_path / "tests.yml")


def test_each_has_its_cases():
    assert {(case.alert, case.fires) for case in CASES} == {
        (name, fires) for name in names() for fires in (True, False)
    }


def test_each_has_a_page_in_the_runbook():
    text = (ROOT / "docs" / "runbook.md").read_text()
    pages = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert [name for name in pages if name.startswith("Terrazzo")] == names()
    for name in names():
        assert all(f"**{part}**" in pages[name] for part in ("What it means.", "How to look.", "What to do.")), name
    assert [rule["annotations"]["runbook"] for rule in rules()] == [
        f"docs/runbook.md#{name.lower()}" for name in names()
    ]


def test_each_metric_exists():
    """A renamed metric leaves no alert that never fires."""
    known = (ROOT / "tests" / "compatibility" / "snapshot" / "metrics.json").read_text()
    known += (ROOT / "tests" / "compatibility" / "snapshot" / "metrics_influxdb.json").read_text()
    used = {name for rule in rules() for name in re.findall(r"terrazzo_\w+", rule["expr"])}
    assert sorted(name for name in used if name.removesuffix("_bucket") not in known) == []
