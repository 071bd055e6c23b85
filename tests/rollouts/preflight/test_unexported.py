"""Z23: who drafts a plan is told what nobody will see of its GPUs, and why: three reasons, and three ways out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from health.telemetry.metrics import METRICS
from rollouts.checks import Check
from rollouts.steering.preview import preview
from tests.make import NOON, a_source
from tests.rollouts.rows import CANARY, GATES, REST, a_draft

pytestmark = pytest.mark.django_db
SOAK = "stages.0.gate_options.soak"
BY_DEFAULT = [key for key, metric in METRICS.items() if metric.is_usual]


SOAKS = replace(CANARY, gate_options=GATES | {"soak": {"duration_s": 600}})


def told(cluster, owner) -> list[Check]:
    found = preview(a_draft(cluster, owner, stages=(SOAKS, REST)), now=NOON).warnings
    return [check for check in found if check.code.startswith("telemetry-")]


def test_what_exporters_leave_out_by_default_is_named_with_what_would_read_it(cluster, owner):
    a_source(cluster, exported=BY_DEFAULT)

    (check,) = told(cluster, owner)

    assert (check.code, check.field, check.is_grave) == ("telemetry-not-exported", SOAK, False)
    assert check.sentence == (
        f"The telemetry of {cluster.name} answers and does not export what tells of “Many memory errors corrected”, "
        "“NVLink errors”, “GPU slowed down”: the rules that read it find nothing on 3 nodes of this plan, whatever the "
        "new driver does."
    )
    of_links = "NVLink CRC flit errors, NVLink CRC data errors, NVLink replays, NVLink recoveries"
    assert f"NVLink errors: {of_links}" in check.about
    assert check.fix.startswith("Switch on at the exporter")


def test_one_that_lacks_reads_as_one(cluster, owner):
    a_source(cluster, exported=[*BY_DEFAULT, "ecc_corrected", "nvlink_replays"])

    (check,) = told(cluster, owner)

    assert "tells of “GPU slowed down”: the rule that reads it finds nothing on 3 nodes" in check.sentence


def test_who_exports_all_of_it_is_told_nothing(cluster, owner):
    a_source(cluster, exported=[*METRICS])

    assert told(cluster, owner) == []


def test_a_silent_source_is_not_one_that_exports_nothing(cluster, owner):
    """What it exported before it fell silent is not held against it: nobody knows what it would say now."""
    a_source(cluster, exported=BY_DEFAULT, answered_at=NOON - timedelta(hours=1))

    (check,) = told(cluster, owner)

    assert (check.code, check.field) == ("telemetry-silent", SOAK)
    their = "how the GPUs of 3 nodes of this plan fare with the new driver"
    assert check.sentence == f"The telemetry of {cluster.name} is silent: {their} nobody sees now."


def test_a_cluster_without_a_source_is_told_that(cluster, owner):
    (check,) = told(cluster, owner)

    assert (check.code, check.field) == ("telemetry-none", SOAK)
    assert check.sentence.startswith(f"{cluster.name} has no source of telemetry: ")


def test_of_a_source_that_nobody_knows_what_it_exports_nothing_is_said(cluster, owner):
    a_source(cluster, exported=[])

    assert told(cluster, owner) == []
