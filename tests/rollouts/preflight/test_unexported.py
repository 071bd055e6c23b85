"""Z23: who drafts a plan is told what nobody will see of its GPUs, and why: each reason has its own way out."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Node
from health.sources import snapshots
from health.telemetry.base import TelemetryReading
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import WITHOUT, GpuDevice, MetricColumn, TelemetrySnapshot, no_values
from rollouts.checks import Check
from rollouts.commands.preview import preview
from rollouts.preflight.missing_telemetry import WANTED
from tests.health.conftest import _redis, redis  # noqa: F401 (fixtures)
from tests.make import NOON, a_node, a_source, an_exporter_round
from tests.rollouts.make import lines_of, steps_of, values_of
from tests.rollouts.rows import CANARY, GATES, REST, a_draft

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]
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
    assert check.title == "3 rules cannot see 3 of 3 nodes"
    of_links = "NVLink CRC flit errors, NVLink CRC data errors, NVLink replays, NVLink recoveries"
    assert f"NVLink errors: {of_links}" in lines_of(check)
    assert steps_of(check).startswith("Enable one metric of each rule at the exporter")


def test_one_that_lacks_reads_as_one(cluster, owner):
    a_source(cluster, exported=[*BY_DEFAULT, "ecc_corrected", "nvlink_replays"])

    (check,) = told(cluster, owner)

    assert check.title == "1 rule cannot see 3 of 3 nodes"


def test_who_exports_all_of_it_is_told_nothing(cluster, owner):
    a_source(cluster, exported=[*METRICS])

    assert told(cluster, owner) == []


def test_a_silent_source_is_not_one_that_exports_nothing(cluster, owner):
    """What it exported before it fell silent is not held against it: nobody knows what it would say now."""
    a_source(cluster, exported=BY_DEFAULT, answered_at=NOON - timedelta(hours=1))

    (check,) = told(cluster, owner)

    assert (check.code, check.field) == ("telemetry-silent", SOAK)
    assert check.title == f"The telemetry source of {cluster.name} is silent"


def test_a_cluster_without_a_source_is_told_that(cluster, owner):
    (check,) = told(cluster, owner)

    assert (check.code, check.field) == ("telemetry-none", SOAK)
    assert check.title == f"Cluster {cluster.name} has no telemetry source"


def test_of_a_source_that_nobody_knows_what_it_exports_nothing_is_said(cluster, owner):
    a_source(cluster, exported=[])

    assert told(cluster, owner) == []


ECC, LINKS = ("ecc_corrected", "ecc_uncorrected"), ("nvlink_replays",)
WHOLE = (*BY_DEFAULT, *ECC, *LINKS, "throttled_thermal")


def heard(cluster, **has) -> None:
    """What the exporter of each node has, whatever those of others have."""
    devices = tuple(GpuDevice(name.replace("_", "-"), 0, f"GPU-{name}") for name in sorted(has))
    frame = TelemetrySnapshot(NOON.timestamp(), devices)
    for place, name in enumerate(sorted(has)):
        for key in has[name]:
            column = frame.columns.setdefault(key, MetricColumn(no_values(len(has)), no_values(len(has))))
            column.times[place] = WITHOUT
    exported = frozenset(key for each in has.values() for key in each)
    snapshots.store(cluster.pk, TelemetryReading(frame, exported, {}))


@pytest.fixture(params=["a Prometheus", "exporters"])
def by(request, cluster):
    if request.param == "exporters":
        an_exporter_round(cluster, read_at=NOON, answered=3)
    else:
        a_source(cluster, exported=[*METRICS])


@pytest.mark.usefixtures("by")
def test_another_vendors_exporter_does_not_speak_for_the_nodes_of_the_plan(cluster, owner):
    a_node(cluster, "amd-1", gpu_vendor="amd", labels={})
    Node.objects.filter(name__startswith="node-").update(gpu_vendor="nvidia")
    heard(cluster, amd_1=ECC, node_0=BY_DEFAULT, node_1=BY_DEFAULT, node_2=BY_DEFAULT)

    found = told(cluster, owner)

    assert [check.code for check in found] == ["telemetry-not-exported"]
    assert "Many corrected memory errors" in values_of(found[0])
    assert found[0].title.endswith("cannot see 3 of 3 nodes")


def test_exporters_of_which_nothing_is_read_are_no_reason_for_silence(cluster, owner):
    """They were heard: that nothing is exported is known."""
    a_source(cluster, exported=[])
    heard(cluster, node_0=(), node_1=(), node_2=())

    (check,) = told(cluster, owner)

    assert check.code == "telemetry-not-exported"
    assert {rule.title for rule in WANTED} <= set(values_of(check))
    assert check.title.endswith("cannot see 3 of 3 nodes")


@pytest.mark.usefixtures("by")
def test_what_only_some_of_its_nodes_lack_is_said_of_those_by_name(cluster, owner):
    heard(cluster, node_0=WHOLE, node_1=set(WHOLE) - set(ECC), node_2=set(WHOLE) - set(ECC) - set(LINKS))

    of_ecc, of_links = told(cluster, owner)

    assert "Many corrected memory errors" in values_of(of_ecc)
    assert values_of(of_ecc)["Nodes"] == "node-1, node-2"
    assert values_of(of_links)["Nodes"] == "node-2"


@pytest.mark.usefixtures("by")
def test_a_node_that_was_not_heard_is_neither_one_that_lacks_nor_one_that_has(cluster, owner):
    heard(cluster, node_0=WHOLE, node_1=set(WHOLE) - set(LINKS))

    unheard, lacks = told(cluster, owner)

    assert (unheard.code, unheard.field, lines_of(unheard)) == ("telemetry-not-received", SOAK, ("Nodes: node-2",))
    assert unheard.title == "No telemetry from 1 of 3 nodes within a day"
    assert values_of(lacks)["Nodes"] == "node-1"


def test_what_its_exporters_have_no_more_is_not_exported(cluster, owner):
    """A frame keeps for a day that there was a series of it."""
    a_source(cluster, exported=BY_DEFAULT)
    heard(cluster, node_0=METRICS, node_1=METRICS, node_2=METRICS)

    (check,) = told(cluster, owner)

    assert check.title.endswith("cannot see 3 of 3 nodes")


def test_while_nobody_reads_what_gpus_said_nobody_sees_them(cluster, owner, settings):
    a_source(cluster, exported=[*METRICS])
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    (check,) = told(cluster, owner)

    assert check.code == "telemetry-silent"
    assert check.summary.startswith("Redis does not answer")


def test_it_costs_no_query_more_however_many_nodes_lack_it(cluster, owner):
    a_source(cluster, exported=[*METRICS])
    plan = a_draft(cluster, owner, stages=(SOAKS, REST))
    costs = []

    for has in ({"node_0": METRICS, "node_1": METRICS, "node_2": METRICS}, {"node_0": BY_DEFAULT, "node_1": WHOLE}):
        heard(cluster, **has)
        with CaptureQueriesContext(connection) as asked:
            preview(plan, now=NOON)
        costs.append(len(asked))

    assert costs[0] == costs[1]


def unmeasured(cluster, owner, **gates) -> list[Check]:
    stages = [replace(stage, gate_options=GATES | gates) for stage in (CANARY, REST)]
    found = preview(a_draft(cluster, owner, stages=stages), now=NOON).warnings
    return [check for check in found if check.code == "unmeasured"]


def reports(cluster, **has) -> None:
    """Every GPU of a node has a fresh sample of these metrics."""
    devices = tuple(
        GpuDevice(name.replace("_", "-"), index, f"GPU-{name}-{index}") for name in sorted(has) for index in range(8)
    )
    frame = TelemetrySnapshot(NOON.timestamp(), devices)
    for place, device in enumerate(devices):
        for key in has[device.node_name.replace("-", "_")]:
            column = frame.columns.setdefault(key, MetricColumn.empty(len(devices)))
            column.values[place], column.times[place] = 0.0, NOON.timestamp()
    exported = frozenset(key for each in has.values() for key in each)
    snapshots.store(cluster.pk, TelemetryReading(frame, exported, {}))


def test_a_gate_on_telemetry_that_cannot_be_measured_is_named_with_what_would(cluster, owner):
    a_source(cluster, exported=BY_DEFAULT)
    reports(cluster, node_0=METRICS, node_1=BY_DEFAULT, node_2=BY_DEFAULT)

    (check,) = unmeasured(cluster, owner, telemetry_fresh={}, findings={}, xid={}, ecc={}, nvlink={})

    assert check.title == "NVLink errors: not exported by 2 nodes"
    assert check.summary == "NVLink of Rest would wait forever."
    assert (check.field, check.is_grave) == ("stages.1.gate_options.nvlink", True)
    assert "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL" in steps_of(check)
    assert "make the gate advisory" in steps_of(check)
    assert unmeasured(cluster, owner, nvlink={"advisory": True}) == []


def test_without_a_source_no_gate_on_telemetry_can_be_measured(cluster, owner):
    assert [check.field for check in unmeasured(cluster, owner, telemetry_fresh={}, findings={}, xid={})] == [
        "stages.0.gate_options.telemetry_fresh", "stages.0.gate_options.xid",
        "stages.1.gate_options.telemetry_fresh", "stages.1.gate_options.xid",
    ]  # fmt: skip


def test_a_service_level_needs_a_prometheus(cluster, owner):
    checks = unmeasured(cluster, owner, slo={})

    assert [check.field for check in checks] == ["stages.0.gate_options.slo", "stages.1.gate_options.slo"]
    assert checks[0].is_grave
    a_source(cluster)
    assert unmeasured(cluster, owner, slo={}) == []
