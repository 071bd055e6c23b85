"""Builders. Each gives a valid row; name only what the test is about."""

from datetime import UTC, datetime, time, timedelta
from itertools import count
from typing import Any

from tests.saved_rows import build_once

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
_next = count(1)


def a_user(name: str = "", *, role: str | None = None, on: Any = None):
    """A person. `on`: a cluster or a pool; None with a role: the whole fleet."""
    from people.models import User

    user = User.objects.create(username=name or f"user-{next(_next)}")
    return give(user, role, on=on) if role else user


def somebody_who_approves():
    """Without anybody who may approve it, a plan cannot start. The same person each time."""
    return who_approves() or a_user("on-call", role="approver")


def who_approves():
    from people.models import User

    return User.objects.filter(username="on-call").first()


def give(user, role: str, *, on: Any = None):
    from people.models import RoleBinding

    scope = type(on).__name__.lower() if on is not None else "fleet"
    RoleBinding.objects.create(user=user, role=role, scope=scope, scope_id=on.pk if on is not None else 0)
    return user


def a_token(user, *, permissions: list[str] | None = None, expires_at: datetime | None = None) -> str:
    """The secret of a new token; it may do everything unless permissions are named."""
    from people.models import ApiToken
    from people.rights import Permission

    chosen = [permission.value for permission in Permission] if permissions is None else permissions
    _, secret = ApiToken.issue(user=user, name="test", permissions=chosen, now=NOON, expires_at=expires_at)
    return secret


def a_cluster(name: str = "", *, seen_at: datetime | None = NOON, **given: Any):
    """A cluster whose nodes and pods were last observed at `seen_at`. None: it was never watched."""
    from fleet.models import Cluster

    name = name or f"cluster-{next(_next)}"
    row = {"uid": f"uid-of-{name}", "kubeconfig": "/etc/quarterdeck/kubeconfig", "context": name, "mode": "operate"}
    cluster = Cluster.objects.create(name=name, added_at=NOON - timedelta(days=30), **row | given)
    if seen_at:
        for kind in ("nodes", "pods"):
            a_bookmark(cluster, kind, last_seen_at=seen_at)
    return cluster


def a_bookmark(cluster, kind: str, *, state: str = "watching", last_seen_at: datetime | None = NOON, **given: Any):
    from fleet.models import Bookmark

    row = {
        "state_since": NOON - timedelta(hours=1),
        "listed_at": last_seen_at,
        "last_seen_at": last_seen_at,
        "state": state,
    }
    return Bookmark.objects.create(cluster=cluster, kind=kind, **row | given)


def an_operator(cluster, **given: Any):
    """The Deployment of the GPU operator, well."""
    from fleet.models import Workload

    row = {"kind": "Deployment", "namespace": "gpu-operator", "name": "gpu-operator", "uid": "uid-of-the-operator"}
    row |= {"created_at": NOON, "changed_at": NOON, "desired": 1, "ready": 1, "pod_labels": {"app": "gpu-operator"}}
    return Workload.objects.create(cluster=cluster, **row | given)


def a_pool(cluster, name: str = "", *, selector: str = "nvidia.com/gpu.product=NVIDIA-H200", **given: Any):
    from fleet.models import Pool

    return Pool.objects.create(cluster=cluster, name=name or f"pool-{next(_next)}", selector=selector, **given)


def a_node(cluster, name: str = "", *, pool: Any = None, gpus: int = 8, **given: Any):
    """A ready GPU node with all its GPUs. `pool` puts it there, whatever the selector says."""
    (node,) = some_nodes([unsaved_node(cluster, name, gpus=gpus, **given)], pool=pool)
    return node


def some_nodes(nodes: list[Any], *, pool: Any = None) -> list[Any]:
    """Saves nodes, with the GPUs that each should have, in three statements."""
    from fleet.models import Gpu, Node

    Node.objects.bulk_create(nodes)
    Gpu.objects.bulk_create(
        Gpu(node=node, index=index, product="NVIDIA-H200", memory_mib=node.gpu_memory_mib)
        for node in nodes
        for index in range(node.gpus_to_make)
    )
    if pool:
        pool.nodes.add(*nodes)
    return nodes


def unsaved_node(cluster, name: str = "", *, gpus: int = 8, **given: Any):
    from fleet.models import Node
    from gpu.resources.physical import COLUMNS as USE_COLUMNS

    name = name or f"node-{next(_next)}"
    product = "NVIDIA-H200"
    row = {
        "uid": f"uid-of-{cluster.name}-{name}",
        "resource_version": "1",
        "labels": {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product},
        "created_at": NOON - timedelta(days=30),
        "changed_at": NOON - timedelta(hours=2),
        "pods_allocatable": 110,
        "is_ready": True,
        "ready_since": NOON - timedelta(hours=9),
        "kernel": "6.8.0-60-generic",
        "os_image": "Ubuntu 24.04.2 LTS",
        "is_gpu_node": True,
        "gpu_product": product,
        "gpu_memory_mib": 143_771,
        "gpu_capacity": gpus,
        "gpu_allocatable": gpus,
        "gpu_expected": gpus,
        "driver_version": "570.172.08",
        "upgrade_state": "upgrade-done",
    }
    row |= given
    for column in ("capacity", "allocatable", "expected"):
        number = row[f"gpu_{column}"]
        row.setdefault(column, {} if number is None else {"nvidia.com/gpu": number})
    row.setdefault("physical_whole", row["gpu_expected"] or 0)
    physical = sum(row.get(column) or 0 for column in USE_COLUMNS.values())
    row.setdefault("physical_gpus", physical or None)
    node = Node(cluster=cluster, name=name, **row)
    node.gpus_to_make = gpus
    return node


def counted(given: Any = None) -> Any:
    """Count the nodes that a test wrote by hand, as their writers would have. Gives back what it is given."""
    from fleet.allocation.counters import recount
    from fleet.models import Cluster

    for cluster in Cluster.objects.values_list("pk", flat=True):
        recount(cluster)
    return given


def a_pod(node, name: str = "", *, namespace: str = "team-a", gpus: int = 1, **given: Any):
    """A tenant's running pod. `operand="driver"` makes it one of the GPU stack's."""
    from fleet.models import Pod

    name = name or f"pod-{next(_next)}"
    row = {
        "uid": f"uid-of-{node.cluster.name}-{namespace}-{name}",
        "node_name": node.name,
        "created_at": NOON - timedelta(hours=3),
        "changed_at": NOON - timedelta(hours=3),
        "phase": "Running",
        "is_ready": True,
        "ready_since": NOON - timedelta(hours=3),
        "gpus": gpus,
        "resources": {"nvidia.com/gpu": gpus} if gpus else {},
        "is_tenant": bool(gpus) and not given.get("operand"),
        "owner_kind": "Deployment",
        "owner_name": "model",
    }
    return Pod.objects.create(cluster=node.cluster, node=node, namespace=namespace, name=name, **row | given)


def a_placement(node, name: str, *, namespace: str = "team-a", since: datetime, until: datetime | None, **given: Any):
    """A pod's time with GPUs of a node. Whatever has made a pod of it, if it is to be there still."""
    from fleet.models import PodPlacement

    row = {"node_uid": node.uid, "node_name": node.name, "pod_uid": f"uid-of-{node.cluster.name}-{namespace}-{name}"}
    row |= {"owner_kind": "Job", "owner_name": name, "resources": {"nvidia.com/gpu": 1}}
    times = {"since": since, "until": until}
    return PodPlacement.objects.create(cluster=node.cluster, namespace=namespace, name=name, **row | times | given)


def an_operand(cluster, operand: str = "driver", *, name: str = "", **given: Any):
    from fleet.models import Operand

    name = name or f"nvidia-{operand}-daemonset"
    row = {"uid": f"uid-of-{cluster.name}-{name}", "namespace": "gpu-operator", "changed_at": NOON}
    return Operand.objects.create(cluster=cluster, operand=operand, name=name, **row | given)


def a_driver_object(cluster, name: str = "h200", *, kind: str = "NVIDIADriver", **given: Any):
    from fleet.models import DriverObject

    row = {"uid": f"uid-of-{cluster.name}-{kind}-{name}", "version": "570.172.08", "state": "ready", "changed_at": NOON}
    return DriverObject.objects.create(cluster=cluster, kind=kind, name=name, **row | given)


def a_finding(cluster, subject: str = "", *, node=None, **given: Any):
    """Open since a while, where nothing else is given."""
    from health.lifecycle import FindingState
    from health.models import Finding

    row = {
        "subject": subject or (f"node {node.name}" if node else "quarterdeck"), "rule": "x", "severity": "warning",
        "fingerprint": "x", "title": "It is wrong.", "steps": ["Look at it."], "since": NOON - timedelta(minutes=5),
        "opened_at": NOON - timedelta(minutes=4), "resolved_at": None, "updated_at": NOON,
    } | given  # fmt: skip
    state = FindingState.OPEN if row["opened_at"] else FindingState.CONFIRMING
    state = FindingState.RESOLVED if row["resolved_at"] else state
    confirmed_at = row["since"] + timedelta(minutes=1)
    return Finding.objects.create(cluster=cluster, node=node, **{"state": state, "confirmed_at": confirmed_at} | row)


def a_mute(cluster, **given: Any):
    """Of a rule in a cluster, in force, where nothing else is given."""
    from health.models import Mute

    row = {"rule": "x", "by": "ada", "at": NOON, "reason": "Known.", "until": NOON + timedelta(hours=8)} | given
    return Mute.objects.create(cluster=cluster, **row)


def a_crash_log(pod, *lines: str, refused: str = "", **given: Any):
    from health.models import CrashLog

    row = {"container": pod.stuck_container or "main", "restarts": pod.restarts, "read_at": NOON}
    return CrashLog.objects.create(
        cluster=pod.cluster, pod_uid=pod.uid, lines="\n".join(lines), refused=refused, **row | given
    )


def a_node_event(node, sentence: str = "The driver is 570.172.08.", *, at: datetime = NOON, **given: Any):
    from fleet.models import NodeEvent

    detail = {"column": "driver_version", "was": "570.158.01", "is": "570.172.08"}
    row = {"kind": "version", "sentence": sentence, "detail": {} if "kind" in given else detail} | given
    return NodeEvent.objects.create(cluster=node.cluster, node_uid=node.uid, node_name=node.name, at=at, **row)


def an_event_of(finding, kind: str = "finding.opened", at=NOON, **facts):
    """Adds a domain event of a finding, as it is written."""
    from fleet.models import DomainEvent
    from health.evaluation.finding_events import write_events

    write_events([finding], kind, now=at, **facts)
    return DomainEvent.objects.latest("pk")


def a_fleet(name: str = "", *, nodes: int = 3, **given: Any):
    """A cluster on which a plan can start: an NVIDIADriver, its DaemonSet, its nodes, and all of it just seen."""
    from fleet.models import OperandRevision

    cluster = a_cluster(name, **given)
    for kind in ("daemonsets.apps", "nvidiadrivers.nvidia.com", "clusterpolicies.nvidia.com"):
        a_bookmark(cluster, kind)
    policy = {"autoUpgrade": True, "maxParallelUpgrades": 2, "maxUnavailable": "50%"}
    a_driver_object(
        cluster, "cluster-policy", kind="ClusterPolicy", version="", uses_driver_crd=True, upgrade_policy=policy
    )
    driver_object = a_driver_object(cluster)
    selector = {"nvidia.com/gpu.deploy.driver": "true"}
    daemonset = an_operand(
        cluster, owner_kind="NVIDIADriver", owner_name=driver_object.name, owner_uid=driver_object.uid,
        node_selector=selector, generation=1, observed_generation=1,
    )  # fmt: skip
    OperandRevision.objects.create(
        cluster=cluster, uid=f"uid-of-a-revision-{name}", owner_uid=daemonset.uid, revision=1, revision_hash="old",
        changed_at=NOON,
    )  # fmt: skip
    pool = a_pool(cluster, "h200")
    labels = {**selector, "nvidia.com/gpu.product": "NVIDIA-H200"}
    made = [
        unsaved_node(cluster, f"gpu-{number}", labels=dict(labels), driver_owner=driver_object.name)
        for number in range(nodes)
    ]
    some_nodes(made, pool=pool)
    return cluster


def a_draft(cluster=None, *, author=None, **given: Any):
    """A draft for the NVIDIADriver of `a_fleet`: one canary node, then the rest of the pool."""
    from rollouts.commands.plan_drafts import draft
    from rollouts.commands.stage_drafts import StageDraft

    somebody_who_approves()
    cluster = cluster or a_fleet()
    stages = [
        StageDraft("Canary", "canary", count=1),
        StageDraft("H200", "pool", pool_id=cluster.pools.get(name="h200").pk),
    ]
    return draft(
        cluster=cluster,
        driver_object=cluster.driver_objects.get(kind="NVIDIADriver"),
        actor=author or a_user(role="operator"),
        now=NOON,
        **{"title": "New driver", "to_version": "580.126.20", "stages": stages} | given,
    )


def a_plan(cluster=None, *, author=None, **given: Any):
    """A plan that has started: sealed, and its nodes about to be held."""
    from rollouts.models import Plan

    def build() -> Plan:
        by = author or a_user(role="operator")
        return begun(a_draft(cluster, author=by, **given), by)

    if cluster or author or given or who_approves():
        return build()
    return build_once("plan", Plan, build)


def begun(plan, actor, *, reason: str = "", now: datetime = NOON):
    """A draft, sealed by whoever starts it, with two things that were said of it, a grave one and another.

    Rows are not asked what speaks against its start: that takes four times as long as all the rest. Who tests what is
    asked and said calls `start`.
    """
    from rollouts.checks import Check
    from rollouts.commands.plan_start import AskedStart, LiveSeal, LookBefore, begin

    said = [
        Check("unmeasured", title="gpu-0 runs no validator", is_grave=True),
        Check("no-wait", title="waitForCompletion names no pods"),
    ]
    looked = LookBefore([], said, a_sealed_forecast(now))
    begin(plan, AskedStart(actor, reason, "", plan.revision, ""), looked, LiveSeal(), now=now)
    plan.refresh_from_db()
    return plan


def a_sealed_forecast(at: datetime) -> dict[str, Any]:
    end = (at + timedelta(minutes=30)).isoformat()
    cohort = {"cohort": ["NVIDIA-H200", "6.8", "Ubuntu"], "title": "NVIDIA-H200, 6.8, Ubuntu", "nodes": 3,
              "typical_s": 480, "slow_s": 1260, "measured": 0, "source": "default for a compiled driver"}  # fmt: skip
    return {
        "at": at.isoformat(), "mode": "compiled", "values": {"nodes": 3, "waves": 3, "node_s": 480, "total_s": 1800},
        "slow": {"total_s": 4000}, "ends_at": end, "slow_ends_at": end, "headroom": [], "cohorts": [cohort],
    }  # fmt: skip


def an_operation(cluster, *names: str, steps: tuple[str, ...] = ("cordon",), **given: Any):
    """One that is running, with a pending node for each name."""
    from operations.models import Operation, OperationNode

    row = {"state_since": NOON, "reason": "Xid 79.", "asked_by": "ada", "asked_at": NOON, "lease_until": NOON}
    operation = Operation.objects.create(cluster=cluster, steps=list(steps), **row | given)
    OperationNode.objects.bulk_create(
        OperationNode(
            operation=operation, position=position, node_uid=f"uid-of-{name}", node_name=name, state_since=NOON
        )
        for position, name in enumerate(names or ["gpu-0"])
    )
    return operation


def a_case(node, **given: Any):
    """Suspect, opened by ada at noon, where nothing else is given."""
    from maintenance.models import NodeCase

    row = {"state_since": NOON, "state_reason": "Xid 79.", "moved_by": "ada", "opened_at": NOON, "opened_by": "ada"}
    row |= {"reason": "Xid 79.", "fault_at": NOON, "node_uid": node.uid, "node_name": node.name}
    return NodeCase.objects.create(cluster=node.cluster, **row | given)


def a_repair(case, **given: Any):
    """One that ended, refused."""
    row = {"kind": "reboot", "asked_by": "ada", "asked_at": NOON, "deadline": NOON, "came_from": "drained"}
    row |= {"answer": "refused", "ended_at": NOON, "lease_until": NOON}
    return case.repairs.create(**row | given)


def a_repair_receiver(cluster, **given: Any):
    from maintenance.models import RepairReceiver

    row = {"address": "https://bmc.example/", "secret_from": "env:QUARTERDECK_REPAIR_BMC", "changed_by": "root"}
    return RepairReceiver.objects.create(cluster=cluster, **row | {"changed_at": NOON} | given)


def an_image_pull(plan, *outcomes: str, image: str = "", left_out: str = "", **given: Any):
    """One in progress, with an outcome for each of gpu-1, gpu-2, …: blank, pulled, failed or unknown.

    `image`: of all nodes; blank: each has its own system.
    """
    from operations.test_jobs.pull_job import DriverPull

    names = [f"gpu-{number}" for number in range(1, len(outcomes or ("",)) + 1)]
    uids = dict(plan.cluster.nodes.values_list("name", "uid"))
    base = f"nvcr.io/nvidia/driver:{plan.to_version}-ubuntu2"
    images = {uids.get(name, f"uid-of-{name}"): image or f"{base}{name[4:]}.04" for name in names}
    options = DriverPull(plan.from_version, plan.to_version, images).as_option
    operation = an_operation(plan.cluster, *names, steps=("image_pull",), options=options, **given)
    states = {"": "pending", "pulled": "done"}
    for node, (uid, its), outcome in zip(operation.nodes.all(), images.items(), outcomes or ("",), strict=True):
        node.node_uid, node.state = uid, states.get(outcome, "failed")
        if outcome:
            node.progress, node.reason = {"image": its, "outcome": outcome}, f"It is {outcome}."
        node.save()
    return plan.image_pulls.create(operation=operation, to_version=plan.to_version, nodes_each=1, left_out=left_out)


def an_external_rollout(cluster, *states: str, **given: Any):
    """One that others drive from 570 to 580, with a node in each of these states, and a gate that waits."""
    from rollouts.models import ExternalRollout

    row = {
        "object_kind": "NVIDIADriver", "object_name": "h200", "object_uid": "uid-of-the-object", "state": "rolling",
        "from_version": "570.172.08", "to_version": "580.95.05", "state_since": NOON, "began_at": NOON,
        "reason": ("The object requests 580.95.05 now. Before, it "
                  "requested 570.172.08."), "seen_at": NOON, "lease_until": NOON,
        "next_look_at": NOON,
    }  # fmt: skip
    rollout = ExternalRollout.objects.create(cluster=cluster, **row | given)
    uids = dict(cluster.nodes.values_list("name", "uid"))
    for number, state in enumerate(states or ("changed", "released")):
        name = f"gpu-{number}"
        rollout.nodes.create(node_uid=uids.get(name, name), node_name=name, state=state, state_since=NOON)
    rollout.answers.create(gate="driver_version", answer="wait", title="580.95.05 runs on 1 of 2 nodes", since=NOON,
                           at=NOON)  # fmt: skip
    return rollout


def a_stage_to_approve(plan=None):
    """The canary of a plan whose turn it is, waiting for somebody."""
    plan = plan or a_plan()
    type(plan).objects.filter(pk=plan.pk, state="holding").update(state="promoting", write_intended_at=NOON)
    stage = plan.stages.get(index=0)
    stage.move("opening", now=NOON, actor="quarterdeck", reason="Its turn.")
    return stage


def a_window(cluster, *, pool=None, opens_at: str = "02:00", duration_s: int = 7200, **given: Any):
    """A maintenance window: every night from 2 to 4 UTC."""
    from rollouts.models import MaintenanceWindow

    row = {"rule": "FREQ=DAILY", "first_day": NOON.date() - timedelta(days=7), "zone": "UTC", "by": "root", "at": NOON}
    at = time.fromisoformat(opens_at)
    return MaintenanceWindow.objects.create(
        cluster=cluster, pool=pool, opens_at=at, duration_s=duration_s, **row | given
    )


def a_reading(node, *devices: dict[str, Any], read_at: datetime | None = NOON, **given: Any):
    """What the node's exporter last said. None: it never answered."""
    from fleet.models import ExporterReading

    row = {"devices": list(devices), "read_at": read_at, "tried_at": NOON}
    return ExporterReading.objects.create(cluster=node.cluster, node_name=node.name, **row | given)


def a_device_told(index: int, *pods, uuid: str = "", gi_id: str = "", profile: str = "") -> dict[str, Any]:
    """A GPU or slice, with the pods that its exporter names."""
    named = [{"uid": pod.uid, "namespace": pod.namespace, "name": pod.name, "container": "main"} for pod in pods]
    return {"uuid": uuid or f"GPU-{index}", "index": index, "gi_id": gi_id, "profile": profile, "pods": named}


def an_exporter_round(cluster, **given: Any):
    from fleet.models import ExporterRound

    row = {"lease_until": NOON, "next_look_at": NOON, "state": "asked", "state_since": NOON, "read_at": NOON}
    return ExporterRound.objects.create(cluster=cluster, **row | given)


def a_telemetry_trial(cluster, **given: Any):
    """A source that somebody has tried, and that no worker has asked yet."""
    from health.models import TelemetryTrial

    row = {"url": "https://prometheus.example.org", "asked_by": "root", "asked_at": NOON}
    return TelemetryTrial.objects.create(cluster=cluster, **row | given)


def a_source(cluster, **given: Any):
    """A source of telemetry that answered just now. It is not asked: there is no server at its address."""
    from health.models import TelemetrySource

    row = {
        "url": "https://prometheus.example.org", "added_by": "root", "added_at": NOON, "changed_at": NOON,
        "lease_until": NOON, "next_look_at": NOON + timedelta(seconds=15), "state": "answering", "state_since": NOON,
        "answered_at": NOON, "devices": 8, "exported": ["temperature_celsius"],
    }  # fmt: skip
    return TelemetrySource.objects.create(cluster=cluster, **row | given)


def a_pending_pod(cluster, name: str = "", *, namespace: str = "team-a", gpus: int = 1, **given: Any):
    """A tenant's pod without a node. `placement` is what it asks of one, beside the usual scheduler."""
    from fleet.models import Pod

    name = name or f"pod-{next(_next)}"
    row = {
        "uid": f"uid-of-{cluster.name}-{namespace}-{name}",
        "created_at": NOON - timedelta(minutes=20),
        "changed_at": NOON - timedelta(minutes=20),
        "phase": "Pending",
        "status": "Pending",
        "gpus": gpus,
        "resources": {"nvidia.com/gpu": gpus} if gpus else {},
        "is_tenant": True,
        "owner_kind": "Job",
        "owner_name": "train",
    }
    placement = {"scheduler": "default-scheduler"} | given.pop("placement", {})
    return Pod.objects.create(
        cluster=cluster, node=None, namespace=namespace, name=name, placement=placement, **row | given
    )
