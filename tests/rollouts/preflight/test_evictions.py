"""Who holds an eviction back, from rows through the preview's page and REST."""

import pytest

from fleet.models import Bookmark, DisruptionBudget, DriverObject, Node, Pod, ResourceClaim
from kube.resources import DISRUPTION_BUDGETS, RESOURCE_CLAIMS
from rollouts.checks import Check
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked
from tests.make import NOON, a_bookmark, a_pod, an_operand
from tests.rollouts.make import lines_of
from tests.rollouts.rows import POLICY, a_draft


@pytest.fixture
def cluster(cluster):
    a_bookmark(cluster, DISRUPTION_BUDGETS.name)
    return cluster


def said_of(plan) -> list[Check]:
    told = preview(plan, now=NOON)
    return [*told.blockers, *told.warnings]


def warned(plan) -> dict[str, str]:
    return {check.code: check.sentence for check in said_of(plan)}


def a_tenant(cluster, name: str, **given):
    return a_pod(cluster.nodes.get(name="node-1"), name, **given)


def a_budget(cluster, name: str = "model", **given):
    row = {"selector": {"matchLabels": {"app": "model"}}, "disruptions_allowed": 0, "current_healthy": 1,
           "desired_healthy": 1}  # fmt: skip
    return DisruptionBudget.objects.create(
        cluster=cluster, namespace="team-a", name=name, uid=f"uid-of-{name}", changed_at=NOON, **row | given
    )


def with_policy(cluster, **given) -> None:
    DriverObject.objects.filter(cluster=cluster, kind="ClusterPolicy").update(upgrade_policy=POLICY | given)


def test_a_budget_that_allows_none_to_go_is_found_by_its_selector(cluster, owner):
    a_tenant(cluster, "model-0", labels={"app": "model"})
    a_tenant(cluster, "other-0", labels={"app": "other"})
    a_budget(cluster)

    assert warned(a_draft(cluster, owner))["budget-allows-none"].startswith(
        "PodDisruptionBudgets block the eviction of team-a/model-0"
    )


def test_a_budget_whose_selector_nobody_can_read_covers_nothing(cluster, owner):
    a_tenant(cluster, "model-0", labels={"app": "model"})
    a_budget(cluster, selector={"matchLabels": ["app"]})

    assert "budget-allows-none" not in warned(a_draft(cluster, owner))


@pytest.mark.parametrize("gone", [{"phase": "Succeeded"}, {"deleted_at": NOON}])
def test_pods_that_are_done_or_going_hold_nothing_back(cluster, owner, gone):
    a_tenant(cluster, "model-0", owner_kind="", **gone)

    assert "not-deleted-no-controller" not in warned(a_draft(cluster, owner))


@pytest.mark.parametrize(
    ("state", "words"), [("forbidden", "may not be read here"), ("watching", "were last observed at")]
)
def test_budgets_that_are_not_seen_are_not_taken_for_none(cluster, owner, state, words):
    marks = Bookmark.objects.filter(cluster=cluster, kind=DISRUPTION_BUDGETS.name)
    marks.update(state=state, last_seen_at=NOON.replace(hour=9))

    assert words in warned(a_draft(cluster, owner))["budgets-unseen"]


def test_a_cluster_that_serves_no_budgets_has_none(cluster, owner):
    Bookmark.objects.filter(cluster=cluster, kind=DISRUPTION_BUDGETS.name).update(state="absent")

    assert "budgets-unseen" not in warned(a_draft(cluster, owner))


def test_work_that_would_be_lost_needs_a_reason_that_approvers_see(cluster, owner):
    """Z12: and the reason is bound by every approval."""
    with_policy(cluster, podDeletion={"force": True})
    a_tenant(cluster, "notebook", owner_kind="")
    plan = a_draft(cluster, owner)

    with pytest.raises(Blocked) as refusal:
        start(plan, actor=owner, reason="It is time.", expected_revision=1, now=NOON)
    start(plan, actor=owner, reason="", override_reason="Its owner agreed.", expected_revision=1, now=NOON)

    assert refusal.value.blockers[0]["evidence"][-1]["label"] == "team-a/notebook"
    plan.refresh_from_db()
    assert plan.sealed["despite"]["reason"] == "Its owner agreed."
    assert [check["code"] for check in plan.sealed["despite"]["checks"]] == ["loses-unmanaged"]


def test_a_start_that_a_budget_would_fail_asks_for_a_reason_which_approvers_see(cluster, owner):
    """Before, the page said in green that nothing bars it, and the node failed."""
    a_tenant(cluster, "model-0", labels={"app": "model"})
    a_budget(cluster)
    plan = a_draft(cluster, owner)

    told = preview(plan, now=NOON)
    assert told.verdict == "needs-reason"
    assert told.verdict_sentence == "1 check speaks against the start. It needs a reason, which approvers see."
    with pytest.raises(Blocked, match="block the eviction"):
        start(plan, actor=owner, reason="It is time.", expected_revision=1, now=NOON)
    start(plan, actor=owner, reason="", override_reason="It ends at noon.", expected_revision=1, now=NOON)

    assert plan.sealed["despite"]["reason"] == "It ends at noon."
    assert [check["code"] for check in plan.sealed["despite"]["checks"]] == ["budget-allows-none"]


def test_a_policy_that_would_lose_work_is_only_a_warning_where_there_is_none(cluster, owner):
    with_policy(cluster, podDeletion={"force": True})

    told = preview(a_draft(cluster, owner), now=NOON)

    assert told.blockers == []
    assert told.verdict_sentence.startswith("Nothing bars the start. ")
    assert "force" in {check.code for check in told.warnings}


def test_page_and_rest_name_each_pod(cluster, owner, client):
    for number in range(5):
        a_tenant(cluster, f"notebook-{number}", owner_kind="")
    plan = a_draft(cluster, owner)
    client.force_login(owner)

    page = client.get(f"/parts/plans/{plan.pk}/preview").content.decode()
    answer = client.get(f"/api/v1/plans/{plan.pk}/preview").json()

    assert "team-a/notebook-4" in page
    (check,) = [check for check in answer["blockers"] if check["code"] == "not-deleted-no-controller"]
    assert check["title"] == "The operator does not delete 5 pods"
    pods = [{"label": f"team-a/notebook-{number}", "value": "node node-1", "unit": ""} for number in range(5)]
    assert check["evidence"][1:] == pods


def test_a_pod_that_claims_its_gpus_is_evicted_by_a_newer_operator_only(cluster, owner):
    """From 26.7.0 on the operator looks at claims, so that their pods come under its policy."""
    device = {"request": "gpus", "driver": "gpu.nvidia.com", "pool": "node-1", "device": "gpu-0"}
    for name, admin in (("mine", False), ("monitor", True)):
        ResourceClaim.objects.create(
            cluster=cluster, namespace="team-a", name=name, uid=name, created_at=NOON, changed_at=NOON,
            allocated=[device | {"admin": admin}],
        )  # fmt: skip
    a_tenant(cluster, "claims", gpus=0, claims=["mine"], owner_kind="", is_tenant=True)
    a_tenant(cluster, "watches", gpus=0, claims=["monitor"], owner_kind="", is_tenant=False)
    policies = DriverObject.objects.filter(cluster=cluster, kind="ClusterPolicy")

    policies.update(operator_version="v26.7.0")
    newer = said_of(a_draft(cluster, owner))
    policies.update(operator_version="v26.3.3")
    older = said_of(a_draft(cluster, owner))

    assert [lines_of(check) for check in newer if check.code == "not-deleted-no-controller"] == [
        ("Cause: No controller, and podDeletion.force is off", "team-a/claims: node node-1")
    ]
    assert not [check for check in newer if check.code == "pins-driver"]
    assert [lines_of(check) for check in older if check.code == "pins-driver"] == [
        ("team-a/claims on node-1: it claims them; operators before 26.7.0 do not evict such pods",)
    ]


def test_claims_that_are_not_seen_are_not_taken_for_none(cluster, owner):
    a_tenant(cluster, "claims", gpus=0, claims=["mine"], is_tenant=True)
    plan = a_draft(cluster, owner)
    assert "were never read" in warned(plan)["claims-unseen"]

    a_bookmark(cluster, RESOURCE_CLAIMS.name)
    assert "claims-unseen" not in warned(plan)


def test_a_driver_pod_without_a_node_is_named(cluster, owner):
    daemonset = cluster.operands.get(operand="driver")
    pod = a_pod(cluster.nodes.first(), "driver-x", namespace="gpu-operator", gpus=0, operand="driver",
                owner_uid=daemonset.uid, waiting_reason="Unschedulable: a taint")  # fmt: skip
    Pod.objects.filter(pk=pod.pk).update(node=None, node_name="")

    (check,) = [each for each in preview(a_draft(cluster, owner), now=NOON).warnings if each.code == "driver-pods"]

    assert lines_of(check) == (
        "gpu-operator/driver-x: Unschedulable: a taint: no node",
        "nvidia-driver-daemonset: wants 3 pods, has 4",
    )


def test_every_node_that_is_left_out_is_named_with_its_reason(cluster, owner):
    Node.objects.filter(cluster=cluster, name__in=["node-0", "node-2"]).update(is_unschedulable=True)

    said = warned(a_draft(cluster, owner))

    assert said["excluded"] == "2 nodes are left out. Cordoned by somebody else."


def test_the_cuda_of_running_images_is_held_against_an_older_driver(cluster, owner):
    """Above all where the plan leads back."""
    cluster.driver_objects.filter(kind="NVIDIADriver").update(version="595.71.05")
    cluster.nodes.update(driver_version="595.71.05")
    a_tenant(cluster, "new-0", image="nvidia/cuda:13.0.0-base")
    a_tenant(cluster, "old-0", image="team/serve:1", required_cuda="cuda>=12.8 brand=tesla,driver>=535")
    a_tenant(cluster, "who-0", image="team/serve:2")

    said = warned(a_draft(cluster, owner, to_version="570.172.08"))

    assert (
        said["cuda-too-new"]
        == "team-a/new-0 needs a newer driver than 570.172.08. The CUDA version of the image is too new for the driver."
    )
    assert said["cuda-unknown"].startswith("The CUDA version of team-a/who-0 is unknown.")

    cluster.nodes.filter(name="node-2").update(driver_version="570.172.08")
    a_pod(cluster.nodes.get(name="node-2"), "who-1", image="team/serve:2")
    assert "cuda-unknown" not in warned(a_draft(cluster, owner, to_version="570.172.08"))


def test_marks_of_others_on_a_node_are_read(cluster, owner):
    labels = {"karpenter.sh/nodepool": "gpu", "k8saas.nvidia.com/ManagedByNVSentinel": "true"}
    node = cluster.nodes.get(name="node-1")
    taints = [{"key": "karpenter.sh/disrupted", "value": "", "effect": "NoSchedule"}]
    Node.objects.filter(pk=node.pk).update(labels=node.labels | labels, taints=taints)

    assert {"karpenter", "autoscaler-takes", "nvsentinel"} <= warned(a_draft(cluster, owner)).keys()


def test_a_plugin_of_the_dra_driver_that_nobody_stops_is_named(cluster, owner):
    selector = {"nvidia.com/dra-kubelet-plugin": "true"}
    an_operand(cluster, "dra-driver", name="plugin", namespace="dra", node_selector=selector)
    a_tenant(cluster, "plugin-x", namespace="dra", gpus=0, operand="dra-driver", is_tenant=False)
    objects = DriverObject.objects.filter(cluster=cluster)

    sentence = warned(a_draft(cluster, owner))["dra-plugin-stays"]
    assert sentence.startswith("DaemonSet dra/plugin keeps running during the change.")
    objects.update(manager_label="nvidia.com/dra-kubelet-plugin")
    assert "dra-plugin-stays" not in warned(a_draft(cluster, owner))
