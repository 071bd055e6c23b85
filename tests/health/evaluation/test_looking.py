from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from fleet.messages import announce
from fleet.models import Bookmark, DomainEvent, ExporterRound, Node, NodeEvent, Observer, ObservingWorker, Pod, Workload
from fleet.states.node import NodeState
from health.evaluation import evaluation_round
from health.evaluation.failing_pods import failing_pods
from health.models import Finding, TelemetrySource
from kube.credential_life import CredentialLife
from tests.make import (
    NOON,
    a_bookmark,
    a_cluster,
    a_crash_log,
    a_node,
    a_pod,
    a_pool,
    a_source,
    an_exporter_round,
    an_operator,
)
from tests.reports import steps, told

GPU = "nvidia.com/gpu"
MISSING = "allocatable-below-expected"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
REFUSED = "UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"
EVICTED = "Evicted: The node was low on resource: memory."
pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    return cluster


def a_sick_node(cluster, **given):
    counts = {"allocatable": {GPU: 7}, "capacity": {GPU: 8}, "expected": {GPU: 8}}
    return a_node(cluster, "gpu-001", **counts | given)


def reporting(cluster, at):
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)


def test_a_finding_opens_only_when_it_lasts(cluster):
    node = a_sick_node(cluster)

    evaluation_round.evaluate_cluster(cluster, now=NOON)
    assert not Finding.objects.open().exists()
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=70))

    finding = Finding.objects.open().get()
    assert (finding.rule, finding.subject, finding.node, finding.since) == (MISSING, "node gpu-001", node, NOON)
    assert DomainEvent.objects.get().sentence.startswith("1 GPU missing on gpu-001.")


def test_a_finding_is_told_with_the_number_of_a_flush_that_came_while_it_was_looked(cluster, monkeypatch):
    """Pages have heard of that flush, and take nothing older for news."""
    told: list[int] = []
    monkeypatch.setattr(announce, "cluster_changed", lambda _id, **given: told.append(given["seq"]))
    evaluate = evaluation_round.evaluate_nodes

    def flushed_meanwhile(*given, **named):
        Observer.objects.update(batch=F("batch") + 1)
        return evaluate(*given, **named)

    monkeypatch.setattr(evaluation_round, "evaluate_nodes", flushed_meanwhile)
    a_sick_node(cluster)

    evaluation_round.evaluate_cluster(cluster, now=NOON)
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=70))

    assert told == [1, 2]


def test_a_node_that_goes_while_it_is_judged_leaves_no_finding(cluster, monkeypatch):
    evaluate = evaluation_round.evaluate_nodes

    def gone_meanwhile(*given, **named):
        signals = list(evaluate(*given, **named))
        Node.objects.filter(name="gpu-002").delete()
        return signals

    a_sick_node(cluster)
    counts = {"allocatable": {GPU: 7}, "capacity": {GPU: 8}, "expected": {GPU: 8}}
    a_node(cluster, "gpu-002", **counts)
    monkeypatch.setattr(evaluation_round, "evaluate_nodes", gone_meanwhile)

    evaluation_round.evaluate_cluster(cluster, now=NOON)
    connection.check_constraints()

    assert list(Finding.objects.values_list("node__name", flat=True)) == ["gpu-001"]


def test_a_queue_of_upgrades_is_one_finding_once_nothing_moves(cluster):
    nodes = [a_node(cluster, f"gpu-{number:03}", upgrade_state="upgrade-required") for number in range(3)]
    moved = {"cluster": cluster, "node_uid": nodes[0].uid, "node_name": nodes[0].name, "kind": "upgrade"}
    for minute in range(0, 60, 5):
        NodeEvent.objects.create(at=NOON + minute * MINUTE, **moved)
        evaluation_round.evaluate_cluster(cluster, now=NOON + minute * MINUTE)
        reporting(cluster, NOON + (minute + 5) * MINUTE)
    while_it_moves = list(Finding.objects.values_list("rule", flat=True))
    for minute in range(60, 95, 5):
        evaluation_round.evaluate_cluster(cluster, now=NOON + minute * MINUTE)
        reporting(cluster, NOON + (minute + 5) * MINUTE)

    assert while_it_moves == []
    assert [finding.title for finding in Finding.objects.open()] == [
        f"Driver upgrades do not progress in {cluster.name}"
    ]
    assert "Queued at the start: 3 nodes" in told(Finding.objects.open().get())


def test_what_passes_at_once_leaves_no_trace(cluster):
    a_sick_node(cluster)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    Node.objects.update(allocatable={GPU: 8})

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=10))

    assert not Finding.objects.exists()


def test_a_finding_is_resolved_and_opens_again_as_another(cluster):
    a_sick_node(cluster)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=70))
    Node.objects.update(allocatable={GPU: 8})
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=80))
    Node.objects.update(allocatable={GPU: 6})
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=85))

    assert Finding.objects.exclude(resolved_at=None).get().resolved_at == NOON + timedelta(seconds=80)
    assert Finding.objects.get(resolved_at=None).opened_at is None
    assert DomainEvent.objects.filter(kind="finding.resolved").count() == 1


def test_nothing_opens_or_is_resolved_while_the_cluster_is_not_seen(cluster):
    a_sick_node(cluster)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=70))
    Node.objects.update(allocatable={GPU: 8})

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(minutes=10))

    assert Finding.objects.open().filter(rule=MISSING).count() == 1


def test_a_look_that_finds_nothing_new_writes_nothing(cluster):
    a_sick_node(cluster)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=70))

    told = evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=80))

    assert told == 0
    assert Finding.objects.get().updated_at == NOON + timedelta(seconds=70)


def test_the_class_of_the_pool_makes_sharing_a_finding(cluster):
    pool = a_pool(cluster, workload_class="inference")
    a_node(
        cluster,
        pool=pool,
        sharing="time-slicing",
        sharing_replicas=4,
        allocatable={GPU: 32},
        expected={GPU: 32},
        requested={GPU: 3},
    )

    evaluation_round.evaluate_cluster(cluster, now=NOON)
    reporting(cluster, NOON + timedelta(minutes=6))
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(minutes=6))

    assert Finding.objects.open().get().rule == "inference-on-time-slices"


def test_a_lag_is_found_at_once_even_where_nodes_are_stale(cluster):
    Observer.objects.update(lag_ms=8_000, behind_since=NOON)

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(hours=1))

    assert Finding.objects.open().get(rule="observer-behind").subject == "quarterdeck"


def test_a_credential_that_ends_soon_is_a_finding_and_an_event(cluster):
    life = CredentialLife("token", NOON - timedelta(days=360), NOON + timedelta(days=5))
    Observer.objects.update(credentials=[life.written()])

    evaluation_round.evaluate_cluster(cluster, now=NOON)

    assert Finding.objects.open().get(rule="credential-expires").severity == "warning"
    assert DomainEvent.objects.get(facts__rule="credential-expires").kind == "finding.opened"


def test_who_has_died_is_not_behind(cluster):
    Observer.objects.update(lag_ms=8_000, behind_since=NOON, lease_until=NOON + timedelta(seconds=30))
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=44))
    assert "observer-behind" in Finding.objects.open().values_list("rule", flat=True)

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=46))

    assert "observer-behind" not in Finding.objects.open().values_list("rule", flat=True)


def test_an_operator_that_stays_down_is_a_finding_and_one_that_is_not_seen_any_more_stays_one(cluster):
    a_bookmark(cluster, "deployments.apps")
    an_operator(cluster, ready=0)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    reporting(cluster, NOON + timedelta(minutes=2))
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(minutes=2))

    finding = Finding.objects.open().get()
    assert (finding.rule, finding.subject, finding.node) == ("operator-down", "GPU operator", None)

    Workload.objects.update(ready=1)
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(hours=1))
    assert Finding.objects.open().exists()
    reporting(cluster, NOON + timedelta(hours=1))
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(hours=1))
    assert not Finding.objects.open().exists()


def test_a_look_costs_the_same_for_one_node_and_for_fifty(cluster, django_assert_num_queries):
    def nodes(*numbers: int):
        for number in numbers:
            a_node(cluster, f"gpu-{number:03}", allocatable={GPU: 8}, expected={GPU: 8})

    nodes(0)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    with CaptureQueriesContext(connection) as one:
        evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=10))
    nodes(*range(1, 50))

    assert len(one) <= 54
    with django_assert_num_queries(len(one)):
        evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=20))


def a_crashing_pod(node, name="infer", **given):
    row = {"status": "CrashLoopBackOff", "is_ready": False, "stuck_container": "main", "restarts": 188}
    return a_pod(node, name, **row | {"waiting_reason": "CrashLoopBackOff: back-off 5m0s"} | given)


@pytest.mark.parametrize(
    ("line", "summary", "step"),
    [
        (
            "level=fatal msg=failed to unload driver: resource temporarily unavailable",
            "Driver: Something that the program needs is in use: failed to unload driver",
            "lsof, fuser",
        ),
        ("ERROR: The Nouveau kernel driver is currently in use by your system.", "Driver: The nouveau", "Blacklist"),
    ],
)  # fmt: skip
def test_an_operand_that_crash_loops_is_found_with_its_cause_or_its_own_words(cluster, line, summary, step):
    pod = a_crashing_pod(a_node(cluster, "gpu-001"), operand="driver", gpus=0)
    a_crash_log(pod, line)

    evaluation_round.evaluate_cluster(cluster, now=NOON)

    found = Finding.objects.get(rule="pods-failing")
    assert found.summary.startswith(summary)
    assert step in steps(found)


def test_a_gpu_pod_that_crash_loops_is_a_finding_and_its_node_is_not_well(cluster):
    node = a_node(cluster, "gpu-001")
    a_crashing_pod(node)

    evaluation_round.evaluate_cluster(cluster, now=NOON)
    node.refresh_from_db()

    assert (node.state, node.unresolved) == (NodeState.HAS_FINDINGS, 1)
    suspected = Finding.objects.confirming().get()
    assert (suspected.since, suspected.confirmed_at) == (NOON, NOON + timedelta(minutes=1))

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=61))
    assert Finding.objects.open().get().summary == "team-a/infer (CrashLoopBackOff)"

    Pod.objects.update(status="Running", is_ready=True, stuck_container="", waiting_reason="")
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=70))
    node.refresh_from_db()
    assert (node.state, node.unresolved) == (NodeState.READY, 0)


def test_a_pod_that_runs_between_two_crashes_still_fails(cluster):
    a_pod(a_node(cluster), restarts=9, status="Running", crashed_at=NOON - timedelta(minutes=4))

    evaluation_round.evaluate_cluster(cluster, now=NOON)

    found = Finding.objects.confirming().get()
    assert found.rule == "pods-failing"
    assert "(it crashed and is running again)" in told(found)


@pytest.mark.parametrize(
    "given",
    [
        {"is_ready": False, "phase": "Pending", "status": "Pending", "waiting_reason": "Unschedulable: 0/64 nodes"},
        {"is_ready": False, "phase": "Pending", "status": "Init:0/1", "stuck_container": "wait"},
        {"is_ready": False, "phase": "Failed", "status": "Error", "stuck_container": "m", "waiting_reason": "Error"},
        {"restarts": 9, "crashed_at": NOON - timedelta(minutes=11)},
        {"restarts": 1, "crashed_at": NOON - timedelta(minutes=1)},
    ],
)
def test_a_pod_that_waits_or_is_over_or_calm_again_is_no_finding(cluster, given):
    a_pod(a_node(cluster), **given)

    evaluation_round.evaluate_cluster(cluster, now=NOON)

    assert not Finding.objects.exists()


def a_failed_pod(node, name="", *, ago=5 * MINUTE, owner="", reason="", **given):
    ended = {"crashed_at": NOON - ago, "ready_since": NOON - ago, "is_ready": False, "stuck_container": "main"}
    return a_pod(node, name, phase="Failed", status="Error", owner_kind=owner, waiting_reason=reason, **ended | given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"owner": "ReplicaSet", "reason": EVICTED}, "Evicted"),
        ({"owner": "Job", "reason": REFUSED, "crashed_at": None}, "UnexpectedAdmissionError"),
        ({"owner": "Job", "reason": "OutOfnvidia.com/gpu: Node didn't have enough"}, "OutOfnvidia.com/gpu"),
        ({"owner": "StatefulSet", "reason": "Terminated: Pod was terminated in response to imminent"}, "Terminated"),
        ({"owner": "", "ago": 5 * HOUR}, "Error"),
        ({"owner": "", "ago": 5 * HOUR, "reason": EVICTED}, "Evicted"),
        ({"owner": "DaemonSet", "reason": EVICTED, "operand": "device-plugin", "gpus": 0}, "Evicted"),
    ],
)
def test_a_pod_that_its_node_failed_or_that_nobody_makes_again_is_a_finding_with_its_reason(cluster, given, said):
    a_failed_pod(a_node(cluster, "gpu-001"), "one", **given)

    evaluation_round.evaluate_cluster(cluster, now=NOON)

    found = Finding.objects.get()
    assert found.title == "1 pod failed on gpu-001"
    assert found.summary.startswith("team-a/one")
    assert said in told(found)


@pytest.mark.parametrize(
    "given",
    [
        {"owner": "Job"},  # it is tried again, or that is what its people are told by the Job
        {"owner": "Workflow"},
        {"owner": "PyTorchJob"},
        {"owner": "Job", "reason": "DeadlineExceeded: Pod was active on the node longer than the specified deadline"},
        {"owner": "ReplicaSet", "reason": EVICTED, "ago": 61 * MINUTE},
        {"owner": "", "ago": 25 * HOUR, "started_at": NOON - 26 * HOUR, "created_at": NOON - 26 * HOUR},
        {"owner": "", "gpus": 0},
        {"owner": "", "deleted_at": NOON},
    ],
)
def test_a_failed_pod_whose_owner_makes_another_or_that_lies_there_for_long_is_none(cluster, given):
    a_failed_pod(a_node(cluster), **{"created_at": NOON - 30 * HOUR, **given})

    evaluation_round.evaluate_cluster(cluster, now=NOON)

    assert not Finding.objects.exists()


def test_the_failed_pods_of_jobs_are_not_even_loaded(cluster, django_assert_num_queries):
    node = a_node(cluster)
    for _ in range(30):
        a_failed_pod(node, owner="Job")
    a_failed_pod(node, "bare")

    with django_assert_num_queries(5) as asked:  # the others: why the bare one failed
        found = failing_pods(cluster, now=NOON)

    assert [pod.name for pod in found[node.name]] == ["team-a/bare"]
    assert "owner_kind" in asked.captured_queries[0]["sql"]


def test_pods_of_a_cluster_whose_pods_are_not_heard_are_not_judged(cluster):
    a_crashing_pod(a_node(cluster))
    Bookmark.objects.filter(kind="pods").update(last_seen_at=NOON - timedelta(minutes=5))

    evaluation_round.evaluate_cluster(cluster, now=NOON)

    assert not Finding.objects.filter(rule="pods-failing").exists()


def test_a_cluster_that_does_not_answer_is_a_finding_with_the_error(cluster):
    Bookmark.objects.update(state="failing", message="Connection refused.", state_since=NOON)
    for seconds in (0, 61):
        evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=seconds))

    finding = Finding.objects.open().get()
    assert finding.rule == "cluster-not-seen"
    assert "noticed at 12:00:00 UTC. Connection refused." in told(finding)


def test_a_cluster_that_nobody_watches_is_one_at_once(cluster):
    Observer.objects.update(lease_until=NOON)
    ObservingWorker.report("one:7", threads=1, now=NOON)
    Observer.objects.create(cluster=a_cluster(), lease_until=NOON + timedelta(minutes=1))

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=20))

    finding = Finding.objects.open().get()
    assert (finding.rule, finding.severity) == ("cluster-unwatched", "critical")
    assert "Unwatched since: 2026-11-21 12:00:00 UTC" in told(finding)
    assert steps(finding).startswith("1 thread for 2 clusters. Increase -c")


@pytest.mark.parametrize("state", ["silent", "waiting"])
def test_what_a_source_said_before_it_fell_silent_opens_no_finding_and_resolves_none(cluster, state):
    a_source(cluster, state=state)
    exploding = [{"name": "DCGM_EXP_X", "instance": "10.0.0.7:9400", "series": 5000}]
    TelemetrySource.objects.update(exploding=exploding)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    assert not Finding.objects.filter(rule="series-explosion").exists()

    TelemetrySource.objects.update(state="answering")
    evaluation_round.evaluate_cluster(cluster, now=NOON + MINUTE)
    TelemetrySource.objects.update(state=state, exploding=[])
    evaluation_round.evaluate_cluster(cluster, now=NOON + 2 * MINUTE)

    assert Finding.objects.open().filter(rule="series-explosion").exists()


def test_a_source_whose_series_explode_is_a_finding_until_they_do_not(cluster):
    source = a_source(cluster, state="answering")
    TelemetrySource.objects.update(exploding=[{"name": "DCGM_EXP_X", "instance": "10.0.0.7:9400", "series": 5000}])
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    assert "10.0.0.7:9400 DCGM_EXP_X: 5000 series" in told(Finding.objects.open().get(rule="series-explosion"))

    TelemetrySource.objects.filter(pk=source.pk).update(exploding=[])
    evaluation_round.evaluate_cluster(cluster, now=NOON + MINUTE)

    assert not Finding.objects.open().exists()


def test_a_node_made_anew_under_its_name_is_another(cluster):
    a_sick_node(cluster)
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=70))
    Node.objects.get(name="gpu-001").delete()
    again = a_sick_node(cluster, uid="another")

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(seconds=80))

    assert not Finding.objects.open().exists()
    assert Finding.objects.confirming().get().node == again


def silent_reason(cluster, at):
    reporting(cluster, at)
    evaluation_round.evaluate_cluster(cluster, now=at - 3 * MINUTE)
    evaluation_round.evaluate_cluster(cluster, now=at)
    rows = Finding.objects.open().filter(rule="telemetry-silent")
    return [finding.evidence[0]["value"] for finding in rows]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (
            {
                "state": "forbidden",
                "message": "Quarterdeck may not query the exporter: the right get on pods/proxy is missing in",
            },
            "Quarterdeck may not query the exporter: the right get on pods/proxy is missing in",
        ),
        ({"state": "too-many", "message": "300 exporters are too many."}, "300 exporters are too many."),
        ({"exporters": 3}, "None of its 3 exporters answers."),
        ({"exporters": 1}, "The node's exporter does not answer."),
        ({"exporters": 3, "answered": 3}, "No worker has queried its exporters since 2026-11-21 12:00 UTC."),
    ],
)
def test_exporters_that_were_heard_and_are_not_any_more_are_one_finding(cluster, asked, reason):
    an_exporter_round(cluster, **asked)

    said = silent_reason(cluster, NOON + 10 * MINUTE)

    assert said == [reason]
    ExporterRound.objects.update(
        state="unseen", message="The cluster cannot be observed, so its exporters are not queried"
    )
    assert silent_reason(cluster, NOON + 20 * MINUTE) == said
    ExporterRound.objects.update(state="asked", exporters=3, answered=3, read_at=NOON + 30 * MINUTE)
    assert silent_reason(cluster, NOON + 30 * MINUTE) == []


@pytest.mark.parametrize("asked", [{"state": "too-many", "read_at": None}, {"state": "none"}])
def test_exporters_that_were_never_heard_or_are_removed_are_none(cluster, asked):
    an_exporter_round(cluster, **asked)

    assert silent_reason(cluster, NOON + 10 * MINUTE) == []


def test_a_source_that_nobody_asks_is_silent_too(cluster):
    a_source(cluster)

    assert silent_reason(cluster, NOON + 10 * MINUTE) == ["No worker has queried it since 2026-11-21 12:00 UTC."]
