"""Lines of `near_misses.toml`: a wrong cause is worse than none."""

from pathlib import Path

import pytest

from gpu.entry_files import read_file
from health.stack.causes import cause_of, why_waits
from kube.log_lines import decisive_line, other_lines
from tests.health.stack.signs import a_pod, an_event, crashing, signs

LINES = read_file(Path(__file__).with_name("near_misses.toml"))


def line_of(row: dict) -> str:
    return (row.get("line") or row["lines"][0])[:80]


@pytest.mark.parametrize("row", LINES["event"], ids=line_of)
def test_an_event_that_resembles_a_cause(row):
    pod = a_pod(phase="Pending", events=[an_event(row["line"], row["reason"])])

    assert why_waits(signs("", pod)).key == row["cause"]


@pytest.mark.parametrize("row", LINES["beside"], ids=line_of)
def test_an_event_that_stops_no_pod_hides_no_cause(row):
    beside = an_event(row["line"], row["reason"])
    network = an_event("network is not ready: cni plugin not initialized", "NetworkNotReady")
    probe = an_event("Readiness probe failed: HTTP probe failed with statuscode: 503", "Unhealthy")

    assert why_waits(signs("", a_pod(phase="Running", events=[beside]))) is None
    assert why_waits(signs("", crashing(last_words="the last line", events=[beside]))).key == "tenant_crashed"
    assert why_waits(signs("", a_pod(phase="Pending", events=[beside, network]))).key == "cni_not_ready"
    unready = a_pod(phase="Running", is_overdue=True, events=[beside, probe])
    assert why_waits(signs("", unready)).key == "tenant_not_ready"


@pytest.mark.parametrize("row", LINES["placing"], ids=line_of)
def test_a_message_of_the_scheduler_that_resembles_a_cause(row):
    pod = a_pod(phase="Pending", events=[an_event(row["line"], "FailedScheduling")])

    assert why_waits(signs("", pod, is_placed=False, node="")).key == row["cause"]


@pytest.mark.parametrize("row", LINES["operand"], ids=line_of)
def test_a_line_of_an_operand_that_resembles_a_cause(row):
    assert cause_of(signs(row["operand"], crashing(*row["lines"]))).key == row["cause"]


@pytest.mark.parametrize("row", LINES["program"], ids=line_of)
def test_a_line_of_a_program_that_resembles_a_cause(row):
    lines = row["lines"]
    pod = crashing(last_words=decisive_line(lines), more_words=tuple(other_lines(lines, 12)), container="main")

    assert why_waits(signs("", pod)).key == row["cause"]


@pytest.mark.parametrize("row", LINES["starting"], ids=line_of)
def test_a_line_of_a_program_that_starts_is_no_cause(row):
    assert why_waits(signs("", a_pod(phase="Running", container="main", last_words=row["line"]))) is None
