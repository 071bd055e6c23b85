"""Operations against the API server: what they write, what they leave alone, and when they stop."""

from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import QuerySet

from fleet.models import GoneNode, Node, Pod
from gpu.labels import CORDONED_BY, UPGRADE_STATE
from kube import client
from operations import commands, node_writer
from operations.eviction_pace import take_evictions
from operations.ledger.disruptions import record_disruptions
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Disruption, Freeze, Operation, OperationNode, Quarantine, WriterLease
from operations.operation_round import OperationRound, run_operation
from operations.refusals import OperationRefused
from operations.steps.drain import ask_eviction
from operations.steps.evictions import PodOnNode
from operations.steps.uncordon import UncordonStep
from operations.tasks import sweep_operations
from simulator.kinds import DISRUPTION_BUDGET, NAMESPACE, NODE, POD
from tests import make
from tests.rollouts.engine.ground import CANARY, REST, Ground

pytestmark = pytest.mark.django_db
SPEC: dict[str, Any] = {"containers": [{"name": "main", "image": "x"}]}


def begin(ground: Ground, kind: str, *names: str, **given: Any) -> Operation:
    by_name = {node.name: node for node in Node.objects.filter(cluster=ground.cluster, name__in=names)}
    nodes = [by_name[name] for name in names]
    given = {"actor": "ada", "reason": "Xid 79.", "typed_count": len(names), "now": ground.clock()} | given
    return commands.start(ground.cluster, kind, nodes, **given)


def rounds(ground: Ground, operation: Operation, number: int = 1) -> Operation:
    for _ in range(number):
        ground.clock.move(seconds=30)
        run_operation(operation.pk, owner="worker", clock=ground.clock)
    return Operation.objects.get(pk=operation.pk)


def a_pod(ground: Ground, name: str, *, node: str = CANARY, owner: str = "ReplicaSet", ready: bool = True, **spec: Any):
    if not any(one["metadata"]["name"] == "team-a" for one in ground.store.list(NAMESPACE)[0]):
        ground.store.seed(NAMESPACE, {"metadata": {"name": "team-a"}})
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "uid-web", "controller": True}]
    metadata = {"name": name, "labels": {"app": "web"}, "ownerReferences": owners if owner else []}
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": "Running", "conditions": conditions}
    pod = {"metadata": metadata, "spec": {**SPEC, "nodeName": node, **spec}, "status": status}
    return ground.store.seed(POD, pod, "team-a")


def a_budget(ground: Ground, name: str = "web", *, allowed: int = 0) -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    status = {"disruptionsAllowed": allowed, "desiredHealthy": 1, "currentHealthy": 1, "observedGeneration": 1}
    ground.store.seed(DISRUPTION_BUDGET, {"metadata": {"name": name}, "spec": spec, "status": status}, "team-a")


def end_pods(ground: Ground) -> None:
    """Ends evicted pods, as their kubelets would."""
    for metadata in terminating(ground):
        ground.store.delete(POD, metadata["name"], metadata["namespace"], grace_s=0)


def terminating(ground: Ground) -> list[dict[str, Any]]:
    """Returns the metadata of evicted pods, the cluster's other tenants among them."""
    return [pod["metadata"] for pod in ground.store.list(POD)[0] if "deletionTimestamp" in pod["metadata"]]


def pods(ground: Ground) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in ground.store.list(POD, "team-a")[0])


def is_cordoned(ground: Ground, name: str = CANARY) -> bool:
    return ground.node(name)["spec"].get("unschedulable", False)


def owner(ground: Ground, name: str = CANARY) -> str | None:
    return ground.node(name)["metadata"].get("annotations", {}).get(CORDONED_BY)


def node(operation: Operation) -> OperationNode:
    return operation.nodes.get()


def taken() -> list[str]:
    return [one.node_name for one in Disruption.objects.in_force()]


def test_quarantine_cordons_with_its_owner_and_release_leaves_the_node_as_it_was(ground: Ground):
    """lifecycle R4: the node is as before, but for the history."""
    before = ground.node(CANARY)
    quarantine = rounds(ground, begin(ground, "quarantine", CANARY))

    assert quarantine.state == OperationState.FINISHED
    assert node(quarantine).state == NodeProgress.DONE
    assert (is_cordoned(ground), owner(ground)) == (True, quarantine.mark)
    assert Quarantine.objects.in_force().get().placed_at
    assert taken() == [CANARY]

    released = rounds(ground, begin(ground, "release", CANARY))

    assert node(released).reason == "Uncordoned. New pods may start here."
    after = ground.node(CANARY)
    assert after["spec"] == before["spec"]
    assert (after["metadata"].get("annotations") or {}) == (before["metadata"].get("annotations") or {})
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert not Quarantine.objects.in_force().exists()
    assert taken() == []


def test_a_cordon_that_arrives_after_the_release_is_refused(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The worker gave its patch up; the API server receives it once nobody owns the cordon any more."""
    late: list[client.Patch] = []
    with monkeypatch.context() as patched:

        def lost(_connection: object, _name: str, patch: client.Patch) -> None:
            late.append(patch)
            raise client.ClusterError("timed out")

        patched.setattr(node_writer.client, "patch_node", lost)
        quarantine = rounds(ground, begin(ground, "quarantine", CANARY))
    commands.cancel(quarantine, actor="bob", reason="Another node.", now=ground.clock())
    before = ground.node(CANARY)["metadata"].get("annotations")
    released = rounds(ground, begin(ground, "release", CANARY))

    assert node(released).state == NodeProgress.DONE
    assert ground.node(CANARY)["metadata"].get("annotations") == before
    assert not Quarantine.objects.in_force().exists()
    with pytest.raises(client.Conflict):
        client.patch_node(ground.connection, CANARY, late[0])
    assert not is_cordoned(ground)


def test_a_quarantine_whose_result_was_lost_ends_with_a_way_out(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The worker was killed between the end of its row and the result of the step."""
    ground.cordon(CANARY)
    operation = begin(ground, "quarantine", CANARY)
    with monkeypatch.context() as patched:
        patched.setattr(OperationRound, "_record", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rounds(ground, operation)

    operation = rounds(ground, operation, 2)
    assert (operation.state, node(operation).state) == (OperationState.FINISHED, NodeProgress.FAILED)
    assert node(operation).reason == "Quarterdeck has no cordon on the node. Retry to read the node again."


def test_the_quarantine_of_a_node_that_left_ends_and_gives_its_place_back(ground: Ground):
    """lifecycle R11: nobody can release it."""
    rounds(ground, begin(ground, "quarantine", CANARY))
    left = Node.objects.get(cluster=ground.cluster, name=CANARY)
    GoneNode.objects.create(cluster=ground.cluster, node_id=left.pk, uid=left.uid, name=CANARY, gone_at=ground.clock())

    sweep_operations()

    assert not Quarantine.objects.in_force().exists()
    assert taken() == []


def test_a_foreign_cordon_is_left_alone_both_ways(ground: Ground):
    """L3: a cordon that we did not make is never undone."""
    ground.cordon(CANARY)

    quarantine = rounds(ground, begin(ground, "quarantine", CANARY))
    released = rounds(ground, begin(ground, "release", CANARY))

    assert node(quarantine).reason.startswith("Already cordoned")
    assert node(released).state == NodeProgress.FAILED
    assert "Quarterdeck removes only cordons with its mark" in node(released).reason
    assert (is_cordoned(ground), owner(ground)) == (True, None)
    assert taken() == []


@pytest.mark.parametrize(
    ("mark", "whose"), [(None, "without Quarterdeck's mark: somebody removed it"), ("bob", "by bob")]
)
def test_a_cordon_whose_mark_somebody_changed_is_theirs(ground: Ground, mark: str | None, whose: str):
    """The API server still names Quarterdeck as the field manager."""
    rounds(ground, begin(ground, "quarantine", CANARY))
    ground.store.patch(NODE, CANARY, {"metadata": {"annotations": {CORDONED_BY: mark}}}, how="merge")
    released = rounds(ground, begin(ground, "release", CANARY))

    assert node(released).reason == f"Cordoned {whose}. Quarterdeck removes only cordons with its mark."
    assert (is_cordoned(ground), owner(ground)) == (True, mark)
    again = rounds(ground, begin(ground, "quarantine", CANARY))
    assert node(again).reason == f"Already cordoned {whose}. Quarterdeck does not remove that cordon."


def test_a_node_of_another_uid_is_not_written(ground: Ground):
    """lifecycle R11."""
    operation = begin(ground, "quarantine", CANARY)
    OperationNode.objects.filter(operation=operation).update(node_uid="uid-of-another")
    operation = rounds(ground, operation)

    assert node(operation).state == NodeProgress.FAILED
    assert "is now a different node with the same name" in node(operation).reason
    assert not is_cordoned(ground)
    assert not Quarantine.objects.in_force().exists()


def test_a_drain_names_the_gpu_pods_that_it_leaves_alone(ground: Ground):
    """“No pod of a tenant is left” was said of a node whose GPUs a tenant's DaemonSet used."""
    a_pod(ground, "agent", owner="DaemonSet")
    a_pod(ground, "logs", owner="DaemonSet")
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in ground.store.list(POD, "team-a")[0]}
    row = Node.objects.get(cluster=ground.cluster, name=CANARY)
    Pod.objects.filter(uid=uids["agent"]).delete()
    make.a_pod(row, "agent", namespace="team-a", uid=uids["agent"], owner_kind="DaemonSet")
    operation = rounds(ground, begin(ground, "drain", CANARY))
    end_pods(ground)
    operation = rounds(ground, operation, 3)

    assert node(operation).reason == (
        "Drained, but GPU pods stay, since a drain leaves pods of DaemonSets alone: team-a/agent."
    )


def test_a_drain_names_a_gpu_pod_that_no_row_shows_yet(ground: Ground):
    gpu = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    a_pod(ground, "agent", owner="DaemonSet", **gpu)
    operation = begin(ground, "drain", CANARY)
    for _ in range(4):
        Pod.objects.filter(name="agent").delete()
        operation = rounds(ground, operation)
        end_pods(ground)

    assert node(operation).reason.endswith("a drain leaves pods of DaemonSets alone: team-a/agent.")


def test_a_drain_evicts_and_waits_until_the_node_is_empty(ground: Ground):
    a_pod(ground, "web-1")
    a_pod(ground, "agent", owner="DaemonSet")
    operation = rounds(ground, begin(ground, "drain", CANARY))

    assert is_cordoned(ground)
    assert node(operation).state == NodeProgress.RUNNING
    assert node(operation).progress["pods"][0]["state"] in ("asked", "terminating")
    for _ in range(2):  # services, then GPU pods
        end_pods(ground)
        rounds(ground, operation)
    operation = rounds(ground, operation, 2)

    assert operation.state == OperationState.FINISHED
    assert node(operation).reason == "Drained: no pod of a tenant is left."
    assert pods(ground) == ["agent"]
    assert taken() == [CANARY], "it stays out until it is released"


def test_a_budget_keeps_its_pod_and_the_drain_says_which(ground: Ground):
    """Z47: an eviction never becomes a deletion."""
    a_pod(ground, "web-1")
    a_budget(ground)
    operation = rounds(ground, begin(ground, "drain", CANARY))

    assert "The budget of team-a/web-1 prevents its eviction" in node(operation).reason
    assert node(operation).blocked_since == ground.clock()
    assert node(operation).fails_at == ground.clock() + timedelta(minutes=30)
    assert "The disruption budget web needs 1 healthy pods and has 1 currently" in node(operation).reason
    ground.clock.move(minutes=31)
    operation = rounds(ground, operation)
    assert node(operation).state == NodeProgress.FAILED
    assert node(operation).reason.startswith("Drain blocked. The budget of team-a/web-1")
    assert pods(ground) == ["web-1"]


def test_a_drain_evicts_nothing_once_its_deadline_is_over(ground: Ground):
    """It fails in the same round: the evicted pod would be lost to nobody's benefit."""
    a_pod(ground, "web-1")
    a_budget(ground)
    operation = rounds(ground, begin(ground, "drain", CANARY))
    ground.store.patch(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 0}}, "team-a", how="merge")
    ground.clock.move(minutes=31)

    operation = rounds(ground, operation)

    assert node(operation).state == NodeProgress.FAILED
    assert terminating(ground) == []


def test_a_contact_that_was_not_read_is_read_later_once_for_each_namespace(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    """A namespace that is not read must not end the round: its evictions were asked for already."""
    for number in range(3):
        a_pod(ground, f"web-{number}")
    a_budget(ground)
    ground.store.patch(DISRUPTION_BUDGET, "web", {"spec": {"minAvailable": 3}}, "team-a", how="merge")
    read: list[str] = []
    get = client.get_namespace

    def throttled_once(connection: Any, name: str):
        read.append(name)
        if len(read) == 1:
            raise client.TooManyRequests("Throttled.")
        return get(connection, name)

    monkeypatch.setattr(client, "get_namespace", throttled_once)
    operation = rounds(ground, begin(ground, "drain", CANARY))
    rows = node(operation).progress["pods"]
    assert [pod["state"] for pod in rows if pod["state"] == "refused"] == ["refused"] * 3
    assert not any("contact" in pod for pod in rows)

    operation = rounds(ground, operation, 2)
    assert [pod.get("contact") for pod in node(operation).progress["pods"] if pod["state"] == "refused"] == [""] * 3
    assert read == ["team-a"] * 2


def test_several_budgets_on_a_pod_fail_the_drain(ground: Ground):
    """Z30: the API server never evicts such a pod."""
    a_pod(ground, "web-1")
    a_budget(ground, "one", allowed=1)
    a_budget(ground, "two", allowed=1)
    operation = rounds(ground, begin(ground, "drain", CANARY))

    assert node(operation).state == NodeProgress.FAILED
    assert "more than one PodDisruptionBudget" in node(operation).reason


def test_an_eviction_that_a_webhook_did_not_answer_is_asked_again(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """A mandatory webhook that is away makes the API server answer 500 too."""
    a_pod(ground, "web-1")
    away = client.InternalError('Internal error occurred: failed calling webhook "x": connection refused')
    with monkeypatch.context() as patched:
        patched.setattr(client, "evict_pod", raises(away))
        operation = rounds(ground, begin(ground, "drain", CANARY))
    assert node(operation).state == NodeProgress.RUNNING
    assert "did not answer for " in node(operation).reason
    assert 'failed calling webhook "x"' in node(operation).reason

    rounds(ground, operation)
    assert "web-1" in [each["name"] for each in terminating(ground)]


def test_all_operations_of_a_cluster_share_its_pace_of_evictions(ground: Ground):
    """lifecycle R26."""
    for name in (CANARY, REST[0]):
        for number in range(8):
            a_pod(ground, f"web-{name}-{number}", node=name)
    first, second = (begin(ground, "drain", name) for name in (CANARY, REST[0]))
    ground.clock.move(seconds=30)
    for operation in (first, second):
        run_operation(operation.pk, owner="worker", clock=ground.clock)
    assert len(terminating(ground)) == 10
    ground.clock.move(seconds=2)
    run_operation(second.pk, owner="worker", clock=ground.clock)
    assert len(terminating(ground)) > 10


def test_evictions_that_another_worker_took_are_not_asked_for(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    WriterLease.objects.create(cluster=ground.cluster, instance="ours")
    now, read = ground.clock(), QuerySet.first

    def read_before_another(rows: QuerySet) -> Any:
        row = read(rows)
        WriterLease.objects.update(evictions_until=now + timedelta(seconds=1))
        return row

    with monkeypatch.context() as patched:
        patched.setattr(QuerySet, "first", read_before_another)
        assert take_evictions(ground.cluster.pk, 4, now=now) == 0
    assert take_evictions(ground.cluster.pk, 9, now=now) == 5
    assert take_evictions(ground.cluster.pk, 9, now=now) == 0
    assert take_evictions(ground.cluster.pk, 9, now=now + timedelta(seconds=1)) == 5


def raises(error: Exception):
    def act(*_: Any, **__: Any) -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("given", "option", "why"),
    [
        ({"owner": ""}, {"unmanaged": True}, "no controller starts the pod again"),
        ({"volumes": [{"name": "scratch", "emptyDir": {}}]}, {"empty_dir": True}, "the pod's emptyDir data is lost"),
    ],
)
def test_what_is_lost_needs_consent_and_nothing_is_evicted_before(ground: Ground, given, option, why):
    a_pod(ground, "other")
    a_pod(ground, "web-1", **given)
    operation = rounds(ground, begin(ground, "drain", CANARY))

    assert node(operation).state == NodeProgress.FAILED
    assert f"team-a/web-1 needs your consent: {why}" in node(operation).reason
    assert pods(ground) == ["other", "web-1"]

    operation = rounds(ground, begin(ground, "drain", CANARY, options=option))
    for _ in range(2):  # a pod without a controller is evicted last
        end_pods(ground)
        rounds(ground, operation)
    end_pods(ground)
    assert pods(ground) == []


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("False", "The node is not Ready: its kubelet cannot end pods. Repair the node first."),
        ("Unknown", "Nobody can end its pods: the kubelet is gone since 2026-11-30 12:00 UTC. Repair the node."),
    ],
)
def test_a_node_that_is_not_ready_is_not_drained(ground: Ground, status: str, why: str):
    """lifecycle R30: nobody can end its pods."""
    ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-11-30T12:00:00Z"}
    ground.store.patch(NODE, CANARY, {"status": {"conditions": [ready]}}, how="merge", subresource="status")
    a_pod(ground, "web-1")
    operation = rounds(ground, begin(ground, "drain", CANARY))

    assert node(operation).reason == why
    assert pods(ground) == ["web-1"]


@pytest.mark.parametrize("by", ["pause", "cancel", "stop", "freeze", "switch"])
def test_nothing_is_evicted_after_a_stop(ground: Ground, by: str):
    """Z40."""
    a_pod(ground, "web-1")
    a_budget(ground)
    operation = rounds(ground, begin(ground, "drain", CANARY))
    ground.store.delete(DISRUPTION_BUDGET, "web", "team-a", grace_s=0)
    now = ground.clock()
    if by == "pause":
        commands.pause(operation, actor="ben", reason="Wait.", now=now)
    elif by == "cancel":
        commands.cancel(operation, actor="ben", reason="No.", now=now)
    elif by == "switch":
        ground.stop_everything("Smoke.")
    else:
        is_stop = by == "stop"
        cluster = None if is_stop else ground.cluster
        Freeze.objects.create(by="ben", at=now, reason="x", is_stop=is_stop, binds_rollbacks=is_stop, cluster=cluster)

    evicted = len(terminating(ground))

    rounds(ground, operation, 3)

    assert len(terminating(ground)) == evicted


def test_a_stop_that_comes_between_two_evictions_spares_the_second(ground: Ground, monkeypatch):
    """The guard is asked before each eviction, and loses here."""
    a_pod(ground, "web-1")
    a_pod(ground, "web-2")
    from operations.steps import drain

    evict = drain.client.evict_pod

    def evict_and_stop(*args, **kwargs):
        evict(*args, **kwargs)
        Operation.objects.update(state=OperationState.PAUSED)

    monkeypatch.setattr(drain.client, "evict_pod", evict_and_stop)
    rounds(ground, begin(ground, "drain", CANARY))

    assert len(terminating(ground)) == 1


def test_cancel_gives_back_what_was_not_quarantined(ground: Ground):
    operation = begin(ground, "drain", CANARY, REST[0], options={"at_once": 1})
    a_pod(ground, "web-1")
    a_budget(ground)
    operation = rounds(ground, operation)
    commands.cancel(operation, actor="ben", reason="No.", now=ground.clock())

    assert taken() == [CANARY], "it is quarantined still"
    states = dict(operation.nodes.values_list("node_name", "state"))
    assert set(states.values()) == {NodeProgress.CANCELLED}
    assert not is_cordoned(ground, REST[0])


def test_a_node_that_a_plan_changes_waits(ground: Ground):
    """Z43: one owner at a time."""
    row = Node.objects.get(cluster=ground.cluster, name=CANARY)
    record_disruptions(ground.cluster.pk, {row.uid: CANARY}, by="plan-7", now=ground.clock())
    operation = rounds(ground, begin(ground, "drain", CANARY))

    assert node(operation).state == NodeProgress.PENDING
    assert node(operation).reason == f"plan-7 already changes {CANARY}. A node has only one change at a time."
    assert not is_cordoned(ground)


def test_a_second_operation_waits_for_the_first(ground: Ground):
    """lifecycle R31: two people who act at once."""
    a_pod(ground, "web-1")
    drain = rounds(ground, begin(ground, "drain", CANARY))
    other = rounds(ground, begin(ground, "quarantine", CANARY))
    assert node(other).reason == f"Operation {drain.pk} is in progress on the node."

    for _ in range(4):  # its turns: services, inference, jobs
        end_pods(ground)
        rounds(ground, drain, 3)
    assert rounds(ground, other).state == OperationState.FINISHED


def test_a_node_in_driver_upgrade_is_released_after_it(ground: Ground):
    rounds(ground, begin(ground, "quarantine", CANARY))
    ground.label(CANARY, **{UPGRADE_STATE: "pod-restart-required"})
    operation = rounds(ground, begin(ground, "release", CANARY))

    assert "pod-restart-required" in node(operation).reason
    assert is_cordoned(ground)
    ground.label(CANARY, **{UPGRADE_STATE: "upgrade-done"})
    rounds(ground, operation)
    assert not is_cordoned(ground)


def test_a_release_that_waits_for_nvsentinel_says_how_to_end_a_stale_mark_and_leaves_the_node_free(ground: Ground):
    rounds(ground, begin(ground, "quarantine", CANARY))
    marks = {"labels": {"k8saas.nvidia.com/cordon-by": "NVSentinel"}, "annotations": {"quarantineHealthEvent": "[1]"}}
    Node.objects.filter(name=CANARY).update(is_unschedulable=True, **marks)
    release = rounds(ground, begin(ground, "release", CANARY))
    assert node(release).state == "pending", "a test or a log bundle may run meanwhile"
    assert node(release).reason.endswith(f"kubectl annotate node {CANARY} quarantineHealthEvent-")
    Node.objects.filter(name=CANARY).update(annotations={})
    rounds(ground, release)
    assert not is_cordoned(ground)


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("weave.works/kured-reboot-in-progress", "Kured reboots the node"),
        ("nvsentinel.nvidia.com/validation-session", "NVSentinel quarantines or validates the node"),
    ],
)
def test_a_node_that_another_controller_works_on_is_released_after_it(ground: Ground, mark: str, why: str):
    """lifecycle R2, R18: never fought."""
    rounds(ground, begin(ground, "quarantine", CANARY))
    ground.patch_node(CANARY, {"metadata": {"annotations": {mark: "now"}}})
    operation = rounds(ground, begin(ground, "release", CANARY))

    assert node(operation).reason.startswith(f"Held by another: {why}")
    assert node(operation).state == NodeProgress.PENDING, "other operations may run on the node meanwhile"
    assert is_cordoned(ground)
    ground.patch_node(CANARY, {"metadata": {"annotations": {mark: None}}})
    rounds(ground, operation)
    assert not is_cordoned(ground)


def test_the_first_failure_pauses_the_rest_and_a_retry_starts_it_again(ground: Ground):
    """lifecycle R48."""
    for budget in ground.store.list(DISRUPTION_BUDGET)[0]:
        ground.store.delete(DISRUPTION_BUDGET, budget["metadata"]["name"], budget["metadata"]["namespace"], grace_s=0)
    a_pod(ground, "bare", owner="")
    operation = begin(ground, "drain", CANARY, *REST[:2], options={"at_once": 1})
    operation = rounds(ground, operation, 2)

    assert operation.state == OperationState.PAUSED
    assert operation.state_reason.startswith(f"1 node of 3 failed. {CANARY}: team-a/bare needs your consent: ")
    assert OperationNode.objects.get(node_name=REST[1]).state == NodeProgress.PENDING
    ground.store.delete(POD, "bare", "team-a", grace_s=0)
    commands.retry(operation, actor="ada", reason="Gone by hand.", now=ground.clock())
    for _ in range(10):
        operation = rounds(ground, operation)
        end_pods(ground)

    assert operation.state == OperationState.FINISHED
    assert set(operation.nodes.values_list("state", flat=True)) == {NodeProgress.DONE}


def test_nodes_that_may_not_be_released_any_more_do_not_pause_the_release(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    names = [CANARY, *REST[:2]]
    rounds(ground, begin(ground, "quarantine", *names))
    operation = begin(ground, "release", *names)
    faulty = set(Node.objects.filter(name__in=names[:2]).values_list("uid", flat=True))
    monkeypatch.setattr(UncordonStep, "vetoes", [lambda uids: dict.fromkeys(faulty & set(uids), "A new fault.")])
    monkeypatch.setattr(UncordonStep, "at_once", 1)
    operation = rounds(ground, operation, 4)

    assert operation.state == OperationState.FINISHED
    results = {row.node_name: (row.state, row.reason) for row in operation.nodes.all()}
    assert results == {
        **dict.fromkeys(names[:2], (NodeProgress.FAILED, "A new fault.")),
        names[2]: (NodeProgress.DONE, "Uncordoned. New pods may start here."),
    }


def test_a_key_of_an_operation_that_was_undone_is_refused_with_what_is_so_now(ground: Ground):
    first = begin(ground, "quarantine", CANARY, key="k1")
    rounds(ground, first, 3)
    assert begin(ground, "quarantine", CANARY, key="k1") == first, "it lasts"
    release = begin(ground, "release", CANARY, actor="bob", key="k2")
    rounds(ground, release, 4)
    assert not is_cordoned(ground)

    with pytest.raises(OperationRefused, match=f"Operation {release.pk} undoes it: Release of 1 node by bob, 20"):
        begin(ground, "quarantine", CANARY, key="k1")
    assert begin(ground, "release", CANARY, actor="bob", key="k2") == release


@pytest.mark.parametrize("gone", [{"removed_at": make.NOON}, {"ended_at": make.NOON}], ids=["uncordoned", "ended"])
def test_a_key_of_a_quarantine_that_is_gone_is_refused(ground: Ground, gone):
    rounds(ground, begin(ground, "quarantine", CANARY, key="k1"), 3)
    Quarantine.objects.update(**gone)

    with pytest.raises(OperationRefused, match=f"{CANARY} is no longer quarantined by it."):
        begin(ground, "quarantine", CANARY, key="k1")


def test_a_worker_without_the_turn_writes_nothing(ground: Ground):
    operation = begin(ground, "quarantine", CANARY)
    Operation.objects.update(lease_until=ground.clock() + timedelta(hours=1))

    rounds(ground, operation)

    assert not is_cordoned(ground)


@pytest.mark.parametrize(("classes", "minutes"), [((), 30), (("inference",), 15), (("inference", "training"), 240)])
def test_a_drain_has_the_deadline_of_its_workload_class(classes: tuple[str, ...], minutes: int):
    """lifecycle R29."""
    cluster = make.a_cluster(mode="operate")
    row = make.a_node(cluster, "gpu-1")
    for name in classes:
        make.a_pool(cluster, name, workload_class=name).nodes.add(row)
    given = {"actor": "ada", "reason": "Xid 79.", "typed_count": 1, "now": make.NOON}
    assert commands.start(cluster, "drain", [row], **given).options["deadline_s"] == minutes * 60


def test_a_job_is_evicted_last_and_whole(ground: Ground):
    """lifecycle R24 and R26: services first, then inference, then all pods of a job together."""
    gpu = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    for name, owner_kind, spec in (
        ("job-0", "Job", gpu), ("job-1", "Job", gpu), ("llm-0", "ReplicaSet", gpu), ("web-0", "ReplicaSet", {}),
    ):  # fmt: skip
        a_pod(ground, name, owner=owner_kind, **spec)
    operation = begin(ground, "drain", CANARY)
    gone = []
    for _ in range(5):
        rounds(ground, operation)
        gone.append(sorted(each["name"] for each in terminating(ground) if each["namespace"] == "team-a"))
        end_pods(ground)
    assert [each for each in gone if each] == [["web-0"], ["llm-0"], ["job-0", "job-1"]]


@pytest.mark.parametrize("owner_kind", ["Job", "ReplicaSet"])
def test_a_job_or_inference_is_kept_while_a_service_cannot_leave(ground: Ground, owner_kind: str):
    gpu = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    a_pod(ground, "job-0", owner=owner_kind, **gpu)
    a_pod(ground, "web-0")
    a_budget(ground)
    ground.store.patch(POD, "job-0", {"metadata": {"labels": {"app": "job"}}}, "team-a", how="merge")
    operation = rounds(ground, begin(ground, "drain", CANARY), 3)
    assert pods(ground) == ["job-0", "web-0"]
    assert [each["name"] for each in terminating(ground) if each["namespace"] == "team-a"] == []
    assert "web-0" in node(operation).reason


def test_a_pod_whose_namespace_ends_is_waited_for(ground: Ground):
    """The API server refuses its eviction: an eviction is created, and nothing is created there any more."""
    pod = a_pod(ground, "web-0")
    ground.store.patch(NAMESPACE, "team-a", {"spec": {"finalizers": ["kubernetes"]}}, how="merge")
    ground.store.delete(NAMESPACE, "team-a")
    with closing(client.connect(ground.cluster.kubeconfig, ground.cluster.context)) as connection:
        asked = ask_eviction(connection, PodOnNode(uid=pod["metadata"]["uid"], namespace="team-a", name="web-0"))
    assert asked == ("asked", "its namespace is being deleted")
