"""Rules about GPUs over what a Prometheus remembers, held against what the live look makes of the same."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.models import Bookmark, Node, Observer, PodPlacement
from health.backtest.backtest import NoReplay, replay, why_not
from health.backtest.replay import Replay
from health.backtest.report import as_json, lines
from health.backtest.timelines import NodePast
from health.evaluation import evaluation_round
from health.evaluation.signals import Signal, Subject
from health.models import Finding, PoolLimits
from health.rules.base import Severity
from health.rules.gpus.base import GpuFacts
from health.rules.gpus.hot import Hot
from health.rules.limits import Limits
from health.sources import snapshots
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests.health.telemetry.prometheus.a_past import Remembering
from tests.health.telemetry.prometheus.a_server import a_server
from tests.make import NOON, a_cluster, a_node, a_node_event, a_pool, a_source

pytestmark = pytest.mark.django_db
AT, MINUTE, DAY = NOON.timestamp(), timedelta(minutes=1), timedelta(days=1)
TEMPERATURE, REPLAYS = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"


@pytest.fixture
def cluster(settings):
    settings.TELEMETRY_LOOPBACK = True
    cluster = a_cluster()
    a_node(cluster, "gpu-001")
    return cluster


def labels(index: int = 0) -> dict[str, str]:
    return {"UUID": f"GPU-{index}", "gpu": str(index), "Hostname": "gpu-001", "modelName": "NVIDIA H200"}


def said(value, *, minutes: range, every_s: int = 30) -> list[tuple[float, float]]:
    """`value`: by how many minutes before noon. A sample each half minute."""
    ages = range(minutes.start * 60, minutes.stop * 60, -every_s)
    return [(AT - age, value(age / 60)) for age in ages]


def run(cluster, past: Remembering, rule: str = "gpu-hot", **given):
    with a_server(past) as (url, _):
        a_source(cluster, url=url)
        (one,) = replay(rule, [cluster], last=given.pop("last", DAY), clock=lambda: NOON, **given)
    return one


def remembering() -> Remembering:
    return Remembering(AT)


def warm(age: float) -> float:
    return 86.0 if 60 < age <= 120 else 84.0 if 120 < age <= 180 else 60.0


def test_finds_what_the_rule_would_have_with_its_times_and_says_how_much_was_heard(cluster):
    """Z35."""
    past = remembering()
    past.add(TEMPERATURE, labels(0), said(warm, minutes=range(12 * 60, 0, -1)))
    past.add(TEMPERATURE, labels(1), said(lambda _: 61.0, minutes=range(12 * 60, 0, -1)))

    one = run(cluster, past)

    (found,) = one.found
    assert found.subject == "GPU 0 of gpu-001"
    assert found.opened_at == NOON - 175 * MINUTE
    assert found.worst is Severity.CRITICAL
    assert abs(found.resolved_at - (NOON - 60 * MINUTE)) <= MINUTE
    assert one.begin == NOON - 12 * 60 * MINUTE
    assert [(gap.begin, gap.end) for gap in one.gaps] == [(NOON - DAY, one.begin)]
    assert 0.99 < one.reported_ratio <= 1


def test_whose_gpus_a_node_has_is_known_of_the_past_too(cluster):
    """AMD's have limits of their own."""
    Node.objects.update(gpu_vendor="amd")
    past = remembering()
    past.add(TEMPERATURE, labels(0), said(warm, minutes=range(12 * 60, 0, -1)))

    assert run(cluster, past).found == []


def test_how_bad_it_was_is_told_with_what_was_said_then(cluster):
    """It may be less bad before it is over: what is called critical is not told with the sentence of a warning."""
    past = remembering()
    cooling = said(
        lambda age: 86.0 if 120 < age <= 180 else 84.0 if 60 < age <= 120 else 60.0, minutes=range(300, 0, -1)
    )
    past.add(TEMPERATURE, labels(0), cooling)

    one = run(cluster, past)

    (line,) = (each for each in lines("gpu-hot", [one], most=9) if "GPU 0" in each)
    assert "  critical  GPU 0 of gpu-001 is too hot. It has 85 °C or more." in line
    (found,) = as_json("gpu-hot", [one])["clusters"][0]["findings"]
    assert (found["severity"], found["sentence"][:56]) == (
        "critical",
        "GPU 0 of gpu-001 is too hot. It has 85 °C or more. The G",
    )


def test_what_was_not_heard_is_no_all_clear(cluster):
    past = remembering()
    past.add(TEMPERATURE, labels(), said(lambda _: 90.0, minutes=range(24 * 60, 20 * 60, -1)))
    past.series[TEMPERATURE, tuple(sorted(labels().items()))] += said(lambda _: 60.0, minutes=range(60, 0, -1))

    one = run(cluster, past)

    (found,) = one.found
    assert NOON - 61 * MINUTE <= found.resolved_at <= NOON - 59 * MINUTE  # nobody can tell that it was over before
    (gap,) = one.gaps
    assert gap.end - gap.begin > timedelta(hours=18)


def test_a_refused_piece_is_a_gap_and_the_others_are_judged(cluster):
    past = remembering()
    past.add(TEMPERATURE, labels(), said(warm, minutes=range(24 * 60, 0, -1)))
    past.refuses = lambda at: AT - at > 20 * 3600

    one = run(cluster, past)

    assert len(one.found) == 1
    assert "too many samples" in one.gaps[0].reason
    assert one.begin >= NOON - 20 * 60 * MINUTE


def test_limits_that_are_tried_hold_instead_of_those_of_rule_and_pools(cluster):
    past = remembering()
    past.add(TEMPERATURE, labels(), said(warm, minutes=range(24 * 60, 0, -1)))
    with_own = a_pool(cluster, "warm")
    with_own.nodes.set(cluster.nodes.all())
    PoolLimits.objects.create(
        pool=with_own, rule="gpu-hot", warn=95, warn_after_s=300, by="ada", at=NOON, reason="Warm water."
    )

    assert run(cluster, past).found == []
    cluster.telemetry_source.delete()
    (found,) = run(cluster, past, limits=Limits(83, None, 5 * MINUTE)).found
    assert (found.worst, found.would_page) == (Severity.WARNING, False)


def test_counters_are_judged_by_what_they_grew(cluster):
    past = remembering()
    grows = said(lambda age: 1000.0 if age < 120 else 0.0, minutes=range(24 * 60, 0, -1))
    past.add(REPLAYS, labels(), grows)

    (found,) = run(cluster, past, "gpu-pcie-replays").found

    assert NOON - 120 * MINUTE <= found.opened_at <= NOON - 113 * MINUTE
    assert found.resolved_at - found.opened_at <= timedelta(hours=1)


def test_a_gpu_that_fell_off_its_bus_is_silent_and_not_forgotten(cluster):
    past = remembering()
    past.add(TEMPERATURE, labels(0), said(lambda _: 60.0, minutes=range(24 * 60, 0, -1)))
    past.add(TEMPERATURE, labels(1), said(lambda _: 60.0, minutes=range(24 * 60, 5 * 60, -1)))

    (found,) = run(cluster, past, "gpu-silent").found

    assert found.subject == "GPU 1 of gpu-001"
    assert found.resolved_at is None


def test_a_gpu_is_not_silent_before_it_came_nor_a_slice_after_it_was_cut_away(cluster):
    past = remembering()
    past.add(TEMPERATURE, labels(0), said(lambda _: 60.0, minutes=range(24 * 60, 0, -1)))
    past.add(TEMPERATURE, labels(1), said(lambda _: 60.0, minutes=range(10 * 60 + 30, 0, -1)))
    for slice_, minutes in (("3", range(24 * 60, 5 * 60, -1)), ("4", range(5 * 60, 0, -1))):
        cut = labels(2) | {"GPU_I_ID": slice_}
        past.add(TEMPERATURE, cut, [*said(lambda _: 60.0, minutes=minutes), (AT - minutes.stop * 60, None)])

    one = run(cluster, past, "gpu-silent", last=DAY / 2)

    assert one.found == []
    assert one.reported_ratio > 0.99


def test_where_no_node_was_known_is_no_all_clear(cluster):
    a_node_event(
        cluster.nodes.get(), "Seen for the first time.", at=NOON - 120 * MINUTE, kind="ready", detail={"ready": True}
    )
    past = remembering()
    past.add(TEMPERATURE, labels(0), said(lambda _: 60.0, minutes=range(24 * 60, 0, -1)))

    one = run(cluster, past)

    assert one.begin == NOON - 120 * MINUTE
    assert "The cluster has no GPU sample of a node that existed at that time" in one.gaps[0].reason


def test_when_drivers_changed_is_found_out_once_a_look(cluster, monkeypatch):
    past, read = remembering(), []
    for index in range(8):
        past.add(TEMPERATURE, labels(index), said(lambda _: 90.0, minutes=range(60, 0, -1)))
    turn = NodePast.turn

    def counted(self, column, at):
        read.extend([at] if column == "driver_version" else [])
        return turn(self, column, at)

    monkeypatch.setattr(NodePast, "turn", counted)

    assert len(run(cluster, past).found) == 8
    assert len(read) == len(set(read))


def test_a_node_whose_driver_was_being_replaced_is_not_judged(cluster):
    node = cluster.nodes.get()
    was = {"column": "upgrade_state", "was": "upgrade-done", "is": "drain-required"}
    done = {"column": "upgrade_state", "was": "drain-required", "is": "upgrade-done"}
    a_node_event(node, at=NOON - 181 * MINUTE, kind="upgrade", detail=was)
    a_node_event(node, at=NOON - 59 * MINUTE, kind="upgrade", detail=done)
    past = remembering()
    past.add(TEMPERATURE, labels(), said(warm, minutes=range(24 * 60, 0, -1)))

    assert run(cluster, past).found == []


def test_of_a_node_whose_new_layout_nobody_saw_end_is_no_all_clear(cluster):
    node = cluster.nodes.get()
    a_node_event(
        node, at=NOON - 6 * 60 * MINUTE, kind="capacity",
        detail={"column": "mig_config_state", "was": "", "is": "pending"},
    )  # fmt: skip
    past = remembering()
    past.add(TEMPERATURE, labels(), said(warm, minutes=range(12 * 60, 0, -1)))

    one = run(cluster, past, last=DAY / 2)

    assert one.found == []
    assert 0.45 < one.reported_ratio < 0.55
    assert "gpu-001 (2026-11-21 06:00 UTC)" in one.notes[-1]


def placed(cluster, *, gpus: int, since: int, until: int) -> None:
    """Minutes before noon."""
    PodPlacement.objects.create(
        cluster=cluster, node_uid=cluster.nodes.get().uid, pod_uid=f"uid-{since}", namespace="ml", name=f"job-{since}",
        resources={"nvidia.com/gpu": gpus}, since=NOON - since * MINUTE, until=NOON - until * MINUTE,
    )  # fmt: skip


def test_a_quiet_link_is_one_while_one_pod_had_all_gpus_of_the_node(cluster):
    past = remembering()
    for index in range(4):
        sent = said(lambda _, index=index: 1.0 if index == 2 else 9000.0, minutes=range(12 * 60, 0, -1))
        past.add("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", labels(index), sent)
        past.add("DCGM_FI_DEV_GPU_UTIL", labels(index), said(lambda _: 90.0, minutes=range(12 * 60, 0, -1)))
    for gpus, since, until in ((1, 600, 500), (4, 400, 300), (3, 300, 0)):
        placed(cluster, gpus=gpus, since=since, until=until)

    one = run(cluster, past, "gpu-nvlink-quiet", last=DAY / 2)

    (found,) = one.found
    assert found.subject == "GPU 2 of gpu-001"
    assert (found.opened_at, found.resolved_at) == (NOON - 390 * MINUTE, NOON - 300 * MINUTE)
    assert one.begin == NOON - 600 * MINUTE
    assert "were not recorded" in one.gaps[0].reason


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("pods-failing", "stores only their present state"),
        ("plan-halted", "stores only their present state"),
        ("gpu-hott", "does not exist"),
    ],
)
def test_a_rule_for_which_the_past_does_not_answer_is_refused(rule, said):
    assert said in why_not(rule)
    with pytest.raises(NoReplay, match=said):
        replay(rule, [], last=DAY, clock=lambda: NOON)


def test_the_command_says_it_in_lines_and_json(cluster):
    past = Remembering(datetime.now(UTC).timestamp())
    ages = range(3 * 3600, 0, -30)
    past.add(TEMPERATURE, labels(), [(past.now - age, 90.0 if age > 3600 else 60.0) for age in ages])
    out, program = StringIO(), StringIO()
    with a_server(past) as (url, _):
        a_source(cluster, url=url)
        call_command("rules_backtest", "gpu-hot", "--days", "1", stdout=out, stderr=StringIO())
        limits = ("--warn", "95", "--critical", "100")
        call_command("rules_backtest", "gpu-hot", "--days", "1", "--json", *limits, stdout=program, stderr=StringIO())

    assert (
        "In all gpu-hot would have opened 1 finding in 1 cluster: 1 critical. "
        "1 of these is critical: a page to the on-call person."
    ) in out.getvalue()
    assert "unknown: " in out.getvalue()
    assert json.loads(program.getvalue())["clusters"][0]["findings"] == []


@pytest.mark.parametrize("has_source", [False, True])
def test_the_command_fails_where_nothing_is_known(cluster, has_source):
    with a_server(remembering()) as (url, _):
        if has_source:
            a_source(cluster, url=url)
        with pytest.raises(CommandError, match="No cluster has stored data, so the rule cannot be evaluated"):
            call_command("rules_backtest", "gpu-hot", "--days", "1", stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize(
    "given", [("--critical", "90"), ("--warn", "999"), ("--warn", "85", "--critical", "84"), ("--days", "0")]
)
def test_the_command_refuses_what_are_no_limits(cluster, given):
    with pytest.raises(CommandError):
        call_command("rules_backtest", "gpu-hot", *given, stdout=StringIO(), stderr=StringIO())


def test_what_came_back_is_critical_once_it_is_for_as_long_this_time():
    replaying, rule, subject = Replay(), Hot(), Subject("GPU 0 of gpu-001")

    def look(minutes: int, celsius: float) -> None:
        wrong = rule.evaluate(GpuFacts("gpu-001", subject.name, now={"temperature_celsius": celsius}))
        replaying.look(NOON + minutes * MINUTE, [Signal(subject, rule, wrong)] if wrong else [])

    for minutes, celsius in ((0, 84), (5, 90), (9, 60), (10, 84), (12, 90), (15, 90), (16, 90)):
        look(minutes, celsius)
    assert [(one.times, one.severity) for one in replaying.opened] == [(2, Severity.WARNING)]

    look(17, 90)

    assert [one.severity for one in replaying.opened] == [Severity.CRITICAL]


def test_what_comes_back_soon_is_the_same_finding_however_long_it_must_last():
    replaying, rule, subject = Replay(), Hot(Limits(70, None, timedelta(hours=2))), Subject("GPU 0 of gpu-001")
    for minutes, celsius in ((0, 72), (120, 72), (121, 60), (131, 72), (251, 72)):
        wrong = rule.evaluate(GpuFacts("gpu-001", subject.name, now={"temperature_celsius": celsius}))
        replaying.look(NOON + minutes * MINUTE, [Signal(subject, rule, wrong)] if wrong else [])

    assert [one.times for one in replaying.opened] == [2]


DEVICE = GpuDevice("gpu-001", 0, "GPU-0")
CELSIUS = st.lists(st.sampled_from([None, 60.0, 84.0, 90.0]), min_size=20, max_size=30)


@pytest.mark.rounds
@given(celsius=CELSIUS, limits=st.sampled_from([Limits(83, 85, 5 * MINUTE, 5 * MINUTE), Limits(83, 85, 9 * MINUTE)]))
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_opens_and_resolves_what_the_live_look_does(redis, celsius, limits):
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + DAY)
    node = a_node(cluster, "gpu-001")
    pool = a_pool(cluster)
    pool.nodes.set([node])
    PoolLimits.objects.create(
        pool=pool, rule="gpu-hot", warn=83, critical=85, warn_after_s=limits.warn_after.total_seconds(),
        critical_after_s=limits.critical_after.total_seconds(), by="ada", at=NOON, reason="Ours.",
    )  # fmt: skip
    replaying, rule, snapshot = Replay(), Hot(limits), TelemetrySnapshot(AT, (DEVICE,))
    snapshot.columns["temperature_celsius"] = MetricColumn.empty(1)

    for number, value in enumerate(celsius):
        at = NOON + number * 2 * MINUTE
        snapshot.taken_at = at.timestamp()
        if value is not None:
            snapshot.columns["temperature_celsius"].values[0] = value
            snapshot.columns["temperature_celsius"].times[0] = snapshot.taken_at
        snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset(snapshot.columns), {}))
        Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
        evaluation_round.evaluate_cluster(cluster, now=at)
        wrong = rule.evaluate(GpuFacts("gpu-001", "GPU 0 of gpu-001", now={"temperature_celsius": value or 0.0}))
        subject = Subject("GPU 0 of gpu-001", node.pk, node.uid, node.name)
        is_told = value is not None
        replaying.look(at, [Signal(subject, rule, wrong)] if wrong else [], lambda _, told=is_told: told)

    rows = Finding.objects.filter(cluster=cluster, rule="gpu-hot", opened_at__isnull=False).order_by("first_opened_at")
    told = [(row.first_opened_at, row.resolved_at, row.severity, row.times) for row in rows]
    assert [(one.opened_at, one.resolved_at, one.severity, one.times) for one in replaying.opened] == told
    snapshots.forget(cluster.pk)
