"""What one endpoint costs the database does not depend on how much there is to show."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from capacity.models import PoolServiceLevel
from health.models import Finding
from maintenance.models import NodeCase
from notifications.commands.channels import send_test
from notifications.models import Route
from people.models import User
from people.roster import groups
from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import Where
from rollouts.models import GateAnswer, Stage
from tests.callers import calling
from tests.config.test_who_may import READS
from tests.make import (
    NOON,
    a_case,
    a_cluster,
    a_finding,
    a_fleet,
    a_mute,
    a_node,
    a_node_event,
    a_plan,
    a_pod,
    a_pool,
    a_repair,
    a_repair_receiver,
    a_source,
    a_stage_to_approve,
    a_telemetry_trial,
    a_token,
    a_user,
    a_window,
    an_external_rollout,
    an_image_pull,
    an_operation,
    give,
)
from tests.notifications.make import a_channel, a_route

REHEARSED = {"revision": 1, "seed": 1, "asked_at": NOON, "lease_until": NOON, "finished_at": NOON}


def widen(stage: Stage, root: User) -> None:
    """More of everything around one stage."""
    plan, cluster, pool = stage.plan, stage.plan.cluster, stage.plan.cluster.pools.get()
    node = cluster.nodes.get(name="gpu-0")
    selector = {"nvidia.com/gpu.deploy.driver": "true"}
    for number in range(3):
        a_node(cluster, f"more-{number}", pool=pool, labels=selector)
        a_pod(node)
        a_node_event(node)
        a_finding(cluster, f"GPU {number} of gpu-0", node=node, rule="y")
        a_finding(cluster, node=cluster.nodes.get(name=f"more-{number}"), parent=Finding.objects.first())
        a_mute(cluster)
        a_token(root)
        plan.stages.create(index=10 + number, name="More", kind="pool", pool=pool, state="opening", state_since=NOON,
                           gate_options={"approval": {}})  # fmt: skip
        stage.targets.create(position=10 + number, node_uid=str(number), node_name="x", state="held", state_since=NOON)
        stage.waves.create(number=number + 1, decided_at=NOON, reason="")
        GateAnswer.objects.create(stage=stage, gate=f"gate-{number}", answer="wait", title="", since=NOON, at=NOON)
        stage.approvals.create(by=f"p{number}", at=NOON, bundle={}, bundle_hash="")
        plan.events.create(what="note", to="x", at=NOON, actor="ada", stage=stage, target=stage.targets.first())
        an_image_pull(plan, "pulled", "failed", state="finished")
        plan.rehearsals.create(**REHEARSED)
        an_external_rollout(cluster, object_uid=f"uid-{number}")
        an_operation(cluster)
        a_case(cluster.nodes.get(name=f"more-{number}"))
        a_repair(NodeCase.objects.first())
        a_repair_receiver(cluster, pool=a_pool(cluster))
        a_source(a_plan(a_fleet()).cluster)
        fleet_freezes.freeze(Where(a_fleet()), actor="ada", reason="x", now=NOON)
        a_window(a_fleet())
        groups.add(f"more-{number}", actor="root", now=NOON).user_set.add(
            a_user(f"more-{number}", role="viewer", on=a_cluster())
        )
        give(root, "viewer", on=a_cluster())
        more = a_channel(f"more-{number}")
        send_test(more, actor="root", now=NOON)
        a_route(f"more-{number}", more, position=10 + number)


def costs(caller, there: dict[str, int]) -> dict[str, int]:
    found = {}
    for _, path in READS:
        with CaptureQueriesContext(connection) as queries:
            said = caller.get(path.format(**there))
            assert said.status_code == 200
            b"".join(said)  # a file is read as it is sent
        found[path] = len(queries)
    return found


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_what_an_endpoint_costs_does_not_grow(now, db):
    root = a_user("root", role="admin")
    a_token(root)
    stage = a_stage_to_approve(a_plan())
    node = stage.plan.cluster.nodes.get(name="gpu-0")
    pod = a_pod(node)
    a_node_event(node)
    finding = a_finding(node.cluster, "GPU 0 of gpu-0", node=node, rule="gpu-hot")
    a_finding(node.cluster, node=node, parent=finding)
    mute = a_mute(node.cluster)
    GateAnswer.objects.create(stage=stage, gate="soak", answer="wait", title="", since=NOON, at=NOON)
    stage.plan.rehearsals.create(**REHEARSED)
    stage.approvals.create(by="amy", at=NOON, bundle={}, bundle_hash="")
    an_image_pull(stage.plan)
    a_source(node.cluster)
    PoolServiceLevel.objects.create(pool=node.pools.get(), indicator="vllm-ttft-p99", by="root", at=NOON)
    channel = a_channel()
    Route.catch_all()  # where rows were truncated, the first read makes it
    there = {
        "channel_id": channel.pk,
        "delivery_id": send_test(channel, actor="root", now=NOON).pk,
        "route_id": a_route("pages", channel).pk,
        "cluster_id": node.cluster_id,
        "node_id": node.pk,
        "namespace": pod.namespace,
        "workload": f"{pod.namespace}/{pod.owner_kind}/{pod.owner_name}",
        "index": 0,
        "finding_id": finding.pk,
        "mute_id": mute.pk,
        "pool_id": node.pools.get().pk,
        "pod_id": pod.pk,
        "plan_id": stage.plan_id,
        "stage_id": stage.pk,
        "rollout_id": an_external_rollout(node.cluster).pk,
        "case_id": a_repair(a_case(node)).case_id,
        "receiver_id": a_repair_receiver(node.cluster).pk,
        "operation_id": an_operation(node.cluster).pk,
        "person_id": root.pk,
        "group_id": groups.add("sre", actor="root", now=NOON).pk,
        "window_id": a_window(node.cluster).pk,
        "freeze_id": fleet_freezes.freeze(Where(node.cluster), actor="ada", reason="x", now=NOON).pk,
        "trial_id": a_telemetry_trial(node.cluster).pk,
        "driver_object_id": node.cluster.driver_objects.get(kind="NVIDIADriver").pk,
    }
    caller = calling(root)

    assert connection.features.supports_json_field  # Django asks SQLite for it once per process
    small = costs(caller, there)
    widen(stage, root)

    assert costs(caller, there) == small
    # A preview: versions, revisions, gates, room, pods, operands, jobs, budgets, freezes and windows with their places,
    # pending halts, sick nodes, ledger, image, how old the policy's row is, whether pods were ever read, idle GPUs, the
    # source of telemetry, what the cluster itself said, pools that are being sorted, and the times of past plans.
    assert max(small.values()) <= 61
