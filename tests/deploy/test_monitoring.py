"""Alert rules and dashboards: promtool fires each alert, and every metric and label they name is exported."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.metrics import Collected
from tests.make import NOON

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "chart" / "monitoring"
RULES = MONITORING / "alerts.yaml"
NAME = re.compile(r"\b(quarterdeck_[a-z_]+)(?:\{([^}]*)\})?")
MATCHER, GROUPING = re.compile(r"(\w+)\s*[=!]"), re.compile(r"\bby \(([^)]*)\)")
VARIABLE = re.compile(r"label_values\((quarterdeck_[a-z_]+)(?:\{[^}]*\})?, (\w+)\)")

# By alert: series that fire it with their values each minute, when it fires, its labels, and the value in its text.
FIRING: dict[str, tuple[dict[str, str], str, dict[str, str], str]] = {
    "QuarterdeckDown": ({"other": "1x10"}, "6m", {}, ""),
    "QuarterdeckPlanOverdue": ({"quarterdeck_plan_overdue_seconds": "90x10"}, "4m", {}, "1m 30s"),
    "QuarterdeckSweepStopped": (
        {'quarterdeck_sweep_last_timestamp_seconds{what="leases"}': "0x20"},
        "11m",
        {"what": "leases"},
        "11m 0s",
    ),
    "QuarterdeckProcessDied": (
        {'quarterdeck_process_last_end_timestamp_seconds{process="observe",cause="SIGKILL",host="a"}': "0x20"},
        "10m",
        {"process": "observe", "cause": "SIGKILL"},
        "",
    ),
    "QuarterdeckDatabaseSlow": ({"quarterdeck_database_query_seconds": "0.75x20"}, "11m", {}, "750ms"),
    "QuarterdeckAuditAltered": ({'quarterdeck_swept_total{what="audit"}': "2x5"}, "1m", {}, ""),
    "QuarterdeckClusterUnwatched": ({'quarterdeck_observed_clusters{state="unwatched"}': "2x10"}, "3m", {}, "2"),
    "QuarterdeckClusterUnreachable": ({'quarterdeck_observed_clusters{state="backing-off"}': "1x10"}, "6m", {}, "1"),
    "QuarterdeckClusterStale": (
        {'quarterdeck_bookmark_age_seconds{cluster="east",kind="pods"}': "400x10"},
        "6m",
        {"cluster": "east", "kind": "pods"},
        "6m 40s",
    ),
    "QuarterdeckClusterForeign": (
        {'quarterdeck_cluster_foreign{cluster="east"}': "1x5"},
        "1m",
        {"cluster": "east"},
        "",
    ),
    "QuarterdeckObserverBehind": (
        {'quarterdeck_observer_behind{cluster="east"}': "1x10"},
        "6m",
        {"cluster": "east"},
        "",
    ),
    "QuarterdeckClockSkew": (
        {'quarterdeck_cluster_clock_skew_seconds{cluster="east"}': "-61x20"},
        "11m",
        {"cluster": "east"},
        "1m 1s",
    ),
    "QuarterdeckUnreadObjects": (
        {'quarterdeck_unread_objects{cluster="east",kind="pods"}': "3x40"},
        "31m",
        {"cluster": "east", "kind": "pods"},
        "3",
    ),
    "QuarterdeckCriticalFindings": (
        {'quarterdeck_findings{cluster="east",rule="xid",severity="critical",state="open"}': "4x20"},
        "11m",
        {"cluster": "east", "rule": "xid"},
        "4",
    ),
    "QuarterdeckPlanHalted": ({'quarterdeck_plans{state="halted"}': "1x20"}, "16m", {}, "1"),
    "QuarterdeckApprovalWaiting": (
        {'quarterdeck_approval_waiting_seconds{cluster="east"}': "18000x5"},
        "1m",
        {"cluster": "east"},
        "5h 0m 0s",
    ),
    "QuarterdeckLeftBehind": (
        {'quarterdeck_left_behind{cluster="east",what="hold"}': "2x20"},
        "11m",
        {"cluster": "east", "what": "hold"},
        "2",
    ),
    "QuarterdeckOperationPaused": ({'quarterdeck_operations{state="paused"}': "1x20"}, "16m", {}, "1"),
    "QuarterdeckDrainBlocked": (
        {'quarterdeck_cases{cluster="east",state="drain-blocked"}': "1x20"},
        "16m",
        {"cluster": "east"},
        "1",
    ),
    "QuarterdeckCredentialExpires": (
        {
            'quarterdeck_credential_expiry_timestamp_seconds{of="cluster",name="east",kind="token"}': "259000x5",
            'quarterdeck_credential_expiry_timestamp_seconds{of="cluster",name="west",kind="token"}': "360000x5",
        },
        "1m",
        {"of": "cluster", "name": "east", "kind": "token"},
        "",
    ),
    "QuarterdeckMessagesWait": ({"quarterdeck_event_waiting_seconds": "700x10"}, "6m", {}, "11m 40s"),
    "QuarterdeckChannelFailing": (
        {'quarterdeck_channel_failing{channel="ops"}': "1x20"},
        "16m",
        {"channel": "ops"},
        "",
    ),
    "QuarterdeckMessagesGivenUp": (
        {'quarterdeck_deliveries{channel="ops",state="dead"}': "3x5"},
        "1m",
        {"channel": "ops"},
        "3",
    ),
}
# All is well: no alert may fire. Times of sweeps move on with the clock.
HEALTHY = {
    **{
        f'quarterdeck_observed_clusters{{state="{state}"}}': f"{number}x60"
        for state, number in (("watched", 2), ("unwatched", 0), ("backing-off", 0))
    },
    **{f'quarterdeck_plans{{state="{state}"}}': f"{number}x60" for state, number in (("promoting", 1), ("halted", 0))},
    **{f'quarterdeck_sweep_last_timestamp_seconds{{what="{what}"}}': "0+60x60" for what in ("leases", "rows")},
    "quarterdeck_plan_overdue_seconds": "0x60",
    "quarterdeck_database_query_seconds": "0.002x60",
    'quarterdeck_swept_total{what="audit"}': "0x60",
    'quarterdeck_bookmark_age_seconds{cluster="east",kind="nodes"}': "12x60",
    'quarterdeck_bookmark_age_seconds{cluster="east",kind="resourceclaims"}': "0+60x60",
    'quarterdeck_cluster_clock_skew_seconds{cluster="east"}': "2x60",
    'quarterdeck_findings{cluster="east",rule="xid",severity="critical",state="acknowledged"}': "1x60",
    'quarterdeck_approval_waiting_seconds{cluster="east"}': "0+60x60",
    'quarterdeck_channel_failing{channel="ops"}': "0x60",
    'quarterdeck_deliveries{channel="ops",state="sent"}': "9x60",
}


def alerts() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def boards() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((MONITORING / "dashboards").glob("*.json"))}


def expressions() -> Iterator[tuple[str, str]]:
    """Yields each expression of rules and dashboards, with its place."""
    for name, rule in alerts().items():
        yield name, rule["expr"]
    for name, board in boards().items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}", target["expr"]


@pytest.fixture
def exported(db) -> dict[str, set[str]]:
    """The labels of each metric, as the product exports it."""
    found = {}
    for family in Collected(NOON).collect():
        labels = set(family._labelnames)
        found |= (
            {family.name: labels, f"{family.name}_total": labels} if family.type == "counter" else {family.name: labels}
        )
    return found


def test_every_metric_and_label_of_rules_and_dashboards_is_exported(exported):
    wrong = []
    for place, expression in expressions():
        names = NAME.findall(expression)
        assert names, place
        for name, matchers in names:
            grouped = {label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",")}
            used = set(MATCHER.findall(matchers)) | (grouped if len({each for each, _ in names}) == 1 else set())
            wrong += [(place, name, label) for label in used - exported.get(name, {"no such metric"})]
    assert wrong == []


def test_every_variable_of_a_dashboard_asks_for_a_label_that_is_exported(exported):
    queries = [
        variable["query"]["query"]
        for board in boards().values()
        for variable in board["templating"]["list"]
        if variable["type"] == "query"
    ]

    assert len(queries) == 2
    for query in queries:
        name, label = VARIABLE.search(query).groups()
        assert label in exported[name]


def test_every_alert_has_a_severity_texts_and_a_section_to_read():
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)

    assert headings == list(alerts())
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/operations.md#{name.lower()}"


def test_panels_have_places_of_their_own():
    for board in boards().values():
        cells = [
            (x, y)
            for panel in board["panels"]
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert len({board["uid"] for board in boards().values()}) == len(boards())


def promtool(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["promtool", *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.prometheus
def test_promtool_accepts_every_expression(tmp_path):
    values = {"$cluster": ".*", "$pool": ".*"}
    records = []
    for number, (_, expression) in enumerate(expressions()):
        for variable, value in values.items():
            expression = expression.replace(variable, value)
        records.append({"record": f"e:{number}", "expr": expression})
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": records}]}))

    ended = promtool("check", "rules", "rules.yaml", folder=tmp_path)

    assert ended.returncode == 0, ended.stderr
    assert f"{len(records)} rules found" in ended.stdout


@pytest.mark.prometheus
def test_every_alert_fires_in_its_case_and_none_while_all_is_well(tmp_path):
    assert FIRING.keys() == alerts().keys()
    cases = [fires(name, *case) for name, case in FIRING.items()]
    quiet = [{"eval_time": "50m", "alertname": name, "exp_alerts": []} for name in FIRING]
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [*cases, case_of(HEALTHY, quiet)]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))

    ended = promtool("test", "rules", "test.yaml", folder=tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def fires(name: str, series: dict[str, str], at: str, labels: dict[str, str], value: str) -> dict[str, Any]:
    rule = alerts()[name]
    description = re.sub(r"{{ \$value.*?}}", value, rule["annotations"]["description"])
    for label, its_value in labels.items():
        description = description.replace("{{ $labels." + label + " }}", its_value)
    expected = {
        "exp_labels": {**labels, **rule["labels"]},
        "exp_annotations": {**rule["annotations"], "description": description},
    }
    return case_of(series, [{"eval_time": at, "alertname": name, "exp_alerts": [expected]}])


def case_of(series: dict[str, str], expected: list[dict[str, Any]]) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given, "alert_rule_test": expected}
