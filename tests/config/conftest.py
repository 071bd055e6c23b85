import pytest

from capacity.models import GpuPrice, PoolServiceLevel
from health.models import PoolLimits, RuleShadow
from notifications.commands.channels import send_test
from people.models import GroupMapping
from people.roster import groups
from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import Where
from rollouts.models import GateOverride
from tests.callers import ada, amy, bob, calling, eve, nobody, now, root  # noqa: F401 (fixtures)
from tests.make import (
    a_case,
    a_finding,
    a_mute,
    a_node_event,
    a_pending_pod,
    a_plan,
    a_repair_receiver,
    a_source,
    a_stage_to_approve,
    a_telemetry_trial,
    a_user,
    a_window,
    an_external_rollout,
    an_operation,
)
from tests.notifications.make import a_channel, a_route


@pytest.fixture
def there(db, now) -> dict[str, int]:  # noqa: F811
    """One of everything, by the name its id has in a path."""
    stage = a_stage_to_approve(a_plan())
    node = stage.plan.cluster.nodes.first()
    a_node_event(node)
    a_source(node.cluster)
    pat = calling(a_user("pat", role="viewer")).user
    freeze = fleet_freezes.freeze(Where(node.cluster), actor="pat", reason="Quarter end.", now=now)
    override = GateOverride.objects.create(stage=stage, gate="soak", said="", by="pat", at=now, reason="x", until=now)
    PoolServiceLevel.objects.create(pool=node.pools.get(), indicator="vllm-ttft-p99", by="pat", at=now)
    channel = a_channel()
    return {
        "session_id": pat.sessions.get().public_id,
        "channel_id": channel.pk,
        "delivery_id": send_test(channel, actor="pat", now=now).pk,
        "route_id": a_route("pages", channel).pk,
        "override_id": override.pk,
        "group_id": groups.add("sre", actor="root", now=now).pk,
        "person_id": pat.pk,
        "mapping_id": GroupMapping.objects.create(group="sre", role="viewer", scope="fleet").pk,
        "binding_id": pat.bindings.get().pk,
        "cluster_id": node.cluster_id,
        "node_id": node.pk,
        "namespace": "team-a",
        "workload": "team-a/Job/train",
        "index": 0,
        "pool_id": node.pools.get().pk,
        "pod_id": a_pending_pod(node.cluster).pk,
        "plan_id": stage.plan_id,
        "stage_id": stage.pk,
        "target_id": stage.targets.get().pk,
        "freeze_id": freeze.pk,
        "rollout_id": an_external_rollout(node.cluster).pk,
        "case_id": a_case(node).pk,
        "receiver_id": a_repair_receiver(node.cluster).pk,
        "act": "close",
        "operation_id": an_operation(node.cluster).pk,
        "verb": "pause",
        "finding_id": a_finding(node.cluster, node=node, rule="gpu-hot").pk,
        "mute_id": a_mute(node.cluster).pk,
        "shadow_id": RuleShadow.objects.create(rule="gpu-hot", by="pat", at=now, reason="New here.").pk,
        "limits_id": PoolLimits.objects.create(
            pool=node.pools.get(), rule="gpu-hot", warn=80, warn_after_s=60, by="pat", at=now, reason="x"
        ).pk,
        "price_id": GpuPrice.objects.create(
            product="NVIDIA-H200", amount=2, valid_from=now.date(), by="pat", at=now
        ).pk,
        "view_id": pat.saved_views.create(table="gpus", name="Hot", query="", saved_at=now).pk,
        "window_id": a_window(node.cluster).pk,
        "trial_id": a_telemetry_trial(node.cluster).pk,
        "driver_object_id": node.cluster.driver_objects.get(kind="NVIDIADriver").pk,
    }
