"""Lines of `near_misses.toml`: a wrong cause is worse than none."""

from pathlib import Path

import pytest

from gpu.entry_files import read_file
from health.stack.causes import why_waits
from tests.health.stack.signs import a_pod, an_event, crashing, signs

LINES = read_file(Path(__file__).with_name("near_misses.toml"))


def line_of(row: dict[str, str]) -> str:
    return row["line"][:80]


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
