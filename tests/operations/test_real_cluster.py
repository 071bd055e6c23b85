"""Operations and cases on a real kube-apiserver, with the rights of deploy/rbac and under its admission policy.

`QUARTERDECK_TEST_KUBECONFIG` names it (CONTRIBUTING.md).
"""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet.models import GoneNode, Node
from gpu.labels import CORDONED_BY, HELD_BY, OUT_OF_SERVICE, UPGRADE_SKIP
from kube import client
from maintenance import commands as cases
from maintenance.case_round import follow_cases
from maintenance.lifecycle import CaseState
from maintenance.models import NodeCase
from maintenance.queries import facts_of
from operations import commands
from operations.impact import impact_of
from operations.kinds import KINDS
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation, Quarantine
from operations.quarantine_round import follow_quarantines
from operations.refusals import OperationRefused
from operations.steps.drain import ask_eviction
from operations.steps.evictions import PodOnNode
from tests import make
from tests.deploy.test_policy import GIVEN, RBAC, apply, kubectl, real
from tests.operations.real_cluster import CONTAINER, RealCluster, a_real_cluster, node_of

pytestmark = [pytest.mark.django_db, pytest.mark.nightly, real]
TEAM, STACK = "real-team", "gpu-operator"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A kubeconfig with a token of our account, which has the rights of the manifests and no other."""
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STACK}})
    for manifest in ("quarterdeck.yaml", "policy.yaml"):
        apply(*yaml.safe_load_all((RBAC / manifest).read_text()))
    ended = kubectl("create", "token", "quarterdeck", "--namespace=quarterdeck", "--duration=2h")
    assert ended.returncode == 0, ended.stderr
    owners = yaml.safe_load(Path(GIVEN).read_text())
    name = owners["current-context"]
    its = next(one["context"] for one in owners["contexts"] if one["name"] == name)
    users = [{"name": "quarterdeck", "user": {"token": ended.stdout.strip()}}]
    contexts = [{"name": name, "context": {"cluster": its["cluster"], "user": "quarterdeck"}}]
    path = tmp_path_factory.mktemp("account") / "kubeconfig"
    path.write_text(yaml.safe_dump(owners | {"users": users, "contexts": contexts}))
    path.chmod(0o600)
    return path, name


@pytest.fixture
def there(db: None, ours: tuple[Path, str]) -> Iterator[RealCluster]:
    kubectl("delete", "lease", "quarterdeck", "-n", "quarterdeck", "--ignore-not-found")  # of another database
    cluster = a_real_cluster(Path(GIVEN), ours[0], context=ours[1])
    yield cluster
    cluster.empty()


_number = iter(range(os.getpid() * 100, 10**9))  # a namespace that is being deleted keeps its name for a while


@pytest.fixture
def team(there: RealCluster) -> str:
    return there.namespace(f"{TEAM}-{next(_number)}")


@pytest.fixture
def gpu(there: RealCluster) -> str:
    return there.node("real-gpu-1")


@pytest.fixture
def other(there: RealCluster) -> str:
    return there.node("real-gpu-2")


def begin(there: RealCluster, kind: str, *names: str, **given: Any) -> Operation:
    there.look()
    nodes = [there.row(name) for name in names]
    given = {"actor": "ada", "reason": "Xid 79.", "typed_count": len(names), "now": there.clock()} | given
    return commands.start(there.cluster, kind, nodes, **given)


def test_release_leaves_the_node_byte_for_byte_as_before(there: RealCluster, gpu: str):
    """lifecycle R4."""
    before = there.state(gpu)
    quarantine = there.rounds(begin(there, "quarantine", gpu))

    assert (node_of(quarantine).state, there.is_cordoned(gpu)) == (NodeProgress.DONE, True)
    assert there.state(gpu)["metadata"]["annotations"][CORDONED_BY] == quarantine.mark

    released = there.rounds(begin(there, "release", gpu))
    assert (node_of(released).state, node_of(released).reason) == ("done", "Uncordoned. New pods may start here.")
    assert there.state(gpu) == before


REFUSED = "needs 3 healthy pods and has 3 currently"
SHAPES: dict[str, tuple[dict[str, Any], int, str]] = {
    "no budget": ({}, 2, ""),
    "allows one": ({"minAvailable": 2}, 1, "prevents its eviction"),
    "allows both": ({"minAvailable": 1}, 2, ""),
    "minAvailable refuses": ({"minAvailable": 3}, 0, REFUSED),
    "maxUnavailable 0": ({"maxUnavailable": 0}, 0, REFUSED),
    "a third": ({"maxUnavailable": "33%"}, 1, "prevents its eviction"),
    "all": ({"minAvailable": "100%"}, 0, REFUSED),
}


@pytest.mark.parametrize(("spec", "evicted", "why"), SHAPES.values(), ids=SHAPES)
def test_a_drain_evicts_what_the_budget_allows_and_names_the_budget(
    there: RealCluster, gpu: str, other: str, team: str, spec: dict[str, Any], evicted: int, why: str
):
    there.replicas(team, "web", gpu, gpu, other)
    if spec:
        there.budget(team, "web", app="web", covers=3, **spec)
    operation = there.rounds(begin(there, "drain", gpu))

    row = node_of(operation)
    assert (row.state, len(there.asked(team))) == (NodeProgress.RUNNING, evicted), row.reason
    assert (row.progress["left"], row.progress["of"]) == (2, 2)
    assert why in row.reason
    assert sum(pod["state"] == "refused" for pod in row.progress["pods"]) == (2 - evicted)


def test_a_node_whose_power_is_off_is_marked_until_it_boots(there: RealCluster, gpu: str, team: str):
    """lifecycle R30. Where kube-controller-manager runs, it ends the pods by force."""
    (name,) = there.replicas(team, "web", gpu)
    assert node_of(there.rounds(begin(there, "quarantine", gpu))).state == NodeProgress.DONE
    before = there.state(gpu)
    there.report(gpu, ready="Unknown")
    refused = node_of(there.rounds(begin(there, "drain", gpu)))
    assert refused.reason.startswith("Nobody can end its pods: the kubelet is gone since")

    operation = begin(there, "out-of-service", gpu, options={"powered_off": gpu})
    commands.approve(operation, actor="ben", reason="The rack has no power.", now=there.clock())
    operation = there.rounds(operation, 2)
    (taint,) = [each for each in there.state(gpu)["taints"] if each["key"] == OUT_OF_SERVICE]
    assert (taint["value"], taint["effect"]) == ("nodeshutdown", "NoExecute"), node_of(operation).reason
    if there.has_controllers:
        there.wait(lambda: name not in there.pods(team), f"the end of {name}")
    there.report(gpu, boot_id="second")
    operation = there.rounds(operation)
    assert node_of(operation).state == NodeProgress.DONE, node_of(operation).reason
    assert there.is_cordoned(gpu)
    after = there.state(gpu)
    after["taints"] = [each for each in after["taints"] if "unreachable" not in each["key"]]
    assert after == before


def test_a_drain_goes_on_as_replacements_become_ready(there: RealCluster, gpu: str, other: str, team: str):
    there.replicas(team, "web", gpu, gpu)
    there.budget(team, "web", app="web", covers=2, maxUnavailable=1)
    operation = there.rounds(begin(there, "drain", gpu))
    for left in (1, 0):
        assert len(there.end_pods(team)) == 1
        there.wait_for_budget(team, "web", allowed=0)
        there.replica(team, "web", other)
        there.wait_for_budget(team, "web", allowed=1)
        operation = there.rounds(operation)
        assert len(there.pods(team, gpu)) == left
    operation = there.rounds(operation, 3)

    assert (operation.state, node_of(operation).state) == (OperationState.FINISHED, NodeProgress.DONE)
    assert node_of(operation).reason == "Drained: no pod of a tenant is left."


def test_two_budgets_over_one_pod_fail_the_drain_and_the_preview_agrees(there: RealCluster, gpu: str, team: str):
    """Z30: the API server answers 500, for ever."""
    there.replicas(team, "web", gpu)
    for name in ("one", "two"):
        there.budget(team, name, app="web", covers=1, minAvailable=0)
    trial = there.rounds(begin(there, "try-drain", gpu))
    operation = there.rounds(begin(there, "drain", gpu))

    assert "more than one PodDisruptionBudget" in node_of(trial).reason
    assert node_of(operation).state == NodeProgress.FAILED
    assert "more than one PodDisruptionBudget" in node_of(operation).reason
    assert there.asked(team) == []


def test_a_budget_that_allows_nothing_for_ever_blocks_the_drain_and_forces_nothing(
    there: RealCluster, gpu: str, team: str
):
    """lifecycle R29."""
    there.replicas(team, "web", gpu)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    there.look()
    impact = impact_of(there.cluster, [there.row(gpu)], KINDS["drain"].steps, actor="ada", now=there.clock())
    assert [each.partition(":")[0] for each in impact.budgets] == [f"{team}/web allows no eviction now"]
    operation = there.rounds(begin(there, "drain", gpu, options={"deadline_s": 60}), 3)

    assert node_of(operation).state == NodeProgress.FAILED
    assert node_of(operation).reason.startswith(f"Drain blocked. The budget of {team}/web-")
    assert there.asked(team) == []
    assert there.is_cordoned(gpu)


@pytest.mark.parametrize(("policy", "is_asked"), [("IfHealthyBudget", False), ("AlwaysAllow", True)])
def test_a_running_pod_that_is_not_ready_goes_by_the_policy_of_its_budget(
    there: RealCluster, gpu: str, team: str, policy: str, is_asked: bool
):
    there.replicas(team, "web", gpu, ready=False)
    there.budget(team, "web", app="web", covers=1, minAvailable=1, unhealthyPodEvictionPolicy=policy)
    operation = there.rounds(begin(there, "drain", gpu))

    assert bool(there.asked(team)) is is_asked
    assert ("prevents its eviction" in node_of(operation).reason) is not is_asked


def test_a_pending_pod_goes_past_its_budget(there: RealCluster, gpu: str, team: str):
    """kubernetes, eviction.go: a Pending pod is deleted without a look at budgets."""
    (pod,) = there.replicas(team, "web", gpu)
    there.report_pod(team, pod, ready=False, phase="Pending")
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    there.rounds(begin(there, "drain", gpu))

    assert pod not in there.pods(team) or pod in there.asked(team)


def test_a_budget_that_was_not_counted_yet_is_asked_again(there: RealCluster, gpu: str, team: str):
    """429 with Retry-After 10: the status of the budget is behind its spec."""
    if there.has_controllers:
        pytest.skip("the disruption controller counts at once")
    there.replicas(team, "web", gpu)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=1)
    there.policy.patch_namespaced_pod_disruption_budget("web", team, {"spec": {"maxUnavailable": "100%"}})
    operation = there.rounds(begin(there, "drain", gpu))

    assert (node_of(operation).state, there.asked(team)) == (NodeProgress.RUNNING, [])
    assert "web is still being processed by the server" in node_of(operation).reason
    there.count(team, "web")
    there.rounds(operation)
    assert len(there.asked(team)) == 1


def test_pods_of_a_namespace_that_is_being_deleted_end_with_it(there: RealCluster, gpu: str, team: str):
    (pod,) = there.replicas(team, "web", gpu)
    there.core.patch_namespaced_pod(pod, team, {"metadata": {"finalizers": ["real.example/keep"]}})
    there.core.delete_namespace(team)
    operation = there.rounds(begin(there, "drain", gpu))

    assert node_of(operation).state == NodeProgress.RUNNING
    assert node_of(operation).progress["pods"][0]["state"] in ("asked", "terminating")


def test_a_pod_with_a_finalizer_is_stuck_and_named(there: RealCluster, gpu: str, team: str):
    (pod,) = there.replicas(team, "web", gpu, terminationGracePeriodSeconds=5)
    there.core.patch_namespaced_pod(pod, team, {"metadata": {"finalizers": ["real.example/keep"]}})
    operation = there.rounds(begin(there, "drain", gpu))
    there.end_pods(team)
    there.clock.move(minutes=3)
    operation = there.rounds(operation)

    assert f"{team}/{pod} did not end within the grace period" in node_of(operation).reason
    assert node_of(operation).progress["pods"][0]["state"] == "stuck"


def test_a_remade_pod_is_not_the_one_that_was_asked_about(there: RealCluster, gpu: str, team: str):
    """lifecycle R22: the UID is a precondition."""
    pod = {"metadata": {"name": "set-0"}, "spec": {"containers": [CONTAINER]}}
    first = there.core.create_namespaced_pod(team, pod).metadata.uid
    there.core.delete_namespaced_pod("set-0", team, grace_period_seconds=0)
    there.core.create_namespaced_pod(team, pod)
    there.run(team, "set-0", gpu)

    with closing(client.connect(str(there.ours), there.cluster.context)) as connection:
        answer = ask_eviction(connection, PodOnNode(uid=first, namespace=team, name="set-0"))
    assert answer == ("gone", "gone")
    assert there.pods(team) == {"set-0": False}


def test_a_node_that_was_remade_under_its_name_is_not_written(there: RealCluster, gpu: str, team: str):
    """lifecycle R11."""
    there.replicas(team, "web", gpu)
    operations = [begin(there, kind, gpu) for kind in ("quarantine", "drain", "try-drain", "note")]
    there.remake(gpu)
    before = there.state(gpu)
    ended = [there.rounds(each) for each in operations]

    assert [node_of(each).state for each in ended[:3]] == [NodeProgress.FAILED] * 3
    assert all("is now a different node with the same name" in node_of(each).reason for each in ended[:3])
    assert (there.state(gpu), there.asked(team)) == (before, [])
    assert not Quarantine.objects.in_force().exists()


def test_a_node_that_is_remade_in_the_middle_of_its_drain_fails_and_its_case_ends(
    there: RealCluster, gpu: str, team: str
):
    there.replicas(team, "web", gpu)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    there.look()
    case = cases.open_case(there.row(gpu), actor="ada", reason="Xid 79.", now=there.clock())
    operation = there.rounds(begin(there, "drain", gpu))
    was = there.row(gpu)
    there.remake(gpu)
    operation = there.rounds(operation)

    assert "is now a different node with the same name" in node_of(operation).reason
    GoneNode.objects.create(cluster=there.cluster, node_id=was.pk, uid=was.uid, name=gpu, gone_at=there.clock())
    there.look()
    case = followed(there, case)
    assert case.state == CaseState.RETIRED
    assert "A new node has its name" in case.state_reason
    assert not there.is_cordoned(gpu)


def test_a_sick_node_goes_from_quarantine_over_repair_and_validation_back_into_service(
    there: RealCluster, gpu: str, team: str
):
    """kubectl sees each state, and the node is as before at its end."""
    before = there.state(gpu)
    there.replicas(team, "web", gpu)
    there.look()
    case = cases.open_case(there.row(gpu), actor="ada", reason="Xid 79.", now=there.clock())

    there.rounds(begin(there, "quarantine", gpu))
    assert (followed(there, case).state, there.is_cordoned(gpu)) == (CaseState.QUARANTINED, True)
    drain = there.rounds(begin(there, "drain", gpu))
    assert followed(there, case).state == CaseState.DRAINING
    assert len(there.end_pods(team)) == 1
    drain = there.rounds(drain, 3)
    assert (node_of(drain).state, followed(there, case).state) == (NodeProgress.DONE, CaseState.DRAINED)

    given = {"actor": "ada", "reason": "Rebooted by IPMI."}
    cases.ask_repair(followed(there, case), kind="reboot", now=there.clock(), **given)
    cases.answer_repair(followed(there, case), answer="done", now=there.clock(), **given)
    assert followed(there, case).state == CaseState.IN_REPAIR, "an answer alone proves no reboot"
    with pytest.raises(OperationRefused):
        begin(there, "release", gpu)
    there.report(gpu, boot_id="second")
    Node.objects.filter(name=gpu).update(booted_at=there.clock())
    assert followed(there, case).state == CaseState.VALIDATING
    with pytest.raises(OperationRefused):
        begin(there, "release", gpu)
    there.clock.move(minutes=1)
    cases.record_validation(followed(there, case), result="passed", test="dcgm-3", now=there.clock(), **given)

    released = there.rounds(begin(there, "release", gpu))

    assert node_of(released).reason == "Uncordoned. New pods may start here."
    assert (followed(there, case).state, there.state(gpu)) == (CaseState.PROBATION, before)


def test_a_worker_that_dies_in_the_middle_of_a_drain_leaves_the_rest_to_the_next_one(
    there: RealCluster, gpu: str, other: str, team: str, monkeypatch: pytest.MonkeyPatch
):
    names = there.replicas(team, "web", gpu, gpu, other)[:2]
    asked: list[str] = []
    evict = client.evict_pod

    def dies_after_the_first(connection: Any, namespace: str, name: str, **given: Any) -> None:
        evict(connection, namespace, name, **given)
        asked.append(name)
        if len(asked) == 1:
            raise KeyboardInterrupt

    operation = begin(there, "drain", gpu)
    with monkeypatch.context() as patched:
        patched.setattr(client, "evict_pod", dies_after_the_first)
        with pytest.raises(KeyboardInterrupt):
            there.rounds(operation)
        assert there.asked(team) == asked
        there.clock.move(minutes=1)  # the lease of the dead worker ends
        operation = there.rounds(operation)

    assert sorted(asked) == sorted(names), "each once"
    there.end_pods(team)
    assert node_of(there.rounds(operation, 3)).state == NodeProgress.DONE


def test_a_job_leaves_all_nodes_of_a_drain_together(there: RealCluster, gpu: str, other: str, team: str):
    """lifecycle R24: a service that its budget keeps on one node keeps the job on both."""
    there.replicas(team, "web", other)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    ranks = [there.rank(team, "llama", number, on) for number, on in enumerate((gpu, other))]

    operation = there.rounds(begin(there, "drain", gpu, other), 3)
    assert there.asked(team) == []
    assert "cannot end it yet" in operation.nodes.get(node_name=gpu).reason
    kubectl("delete", "pdb", "web", "-n", team)
    for _ in range(6):
        operation = there.rounds(operation)
        there.look()
        if set(ranks) <= set(there.asked(team)):
            break
        for name in there.asked(team):
            if name not in ranks:
                there.end_pods(team)
                break

    assert set(ranks) <= set(there.asked(team))


def followed(there: RealCluster, case: NodeCase) -> NodeCase:
    there.look()
    while follow_cases(now=there.clock()):
        pass
    return NodeCase.objects.get(pk=case.pk)


def test_kubectl_uncordon_behind_a_drain_stops_it(there: RealCluster, gpu: str, team: str):
    there.replicas(team, "web", gpu)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    operation = there.rounds(begin(there, "drain", gpu))
    there.cordon(gpu, on=False)
    operation = there.rounds(operation)

    assert node_of(operation).reason.startswith("Somebody uncordoned the node")
    assert not there.is_cordoned(gpu)


def test_kubectl_uncordon_behind_a_quarantine_is_asked_about_and_accepted(there: RealCluster, gpu: str):
    """lifecycle R40: two offers, and no mark is left either way."""
    before = there.state(gpu)
    there.look()
    case = cases.open_case(there.row(gpu), actor="ada", reason="Xid 79.", now=there.clock())
    there.rounds(begin(there, "quarantine", gpu))
    assert followed(there, case).state == CaseState.QUARANTINED
    there.cordon(gpu, on=False)
    there.look()
    follow_quarantines(clock=there.clock)

    case = followed(there, case)
    assert Quarantine.objects.in_force().get().removed_at is not None
    assert facts_of([case])[case.pk].obstacle.startswith("Somebody else uncordoned the node.")
    assert not there.is_cordoned(gpu), "people are asked"

    there.rounds(begin(there, "accept-uncordon", gpu))
    assert there.state(gpu) == before
    assert followed(there, case).state == CaseState.PROBATION


def test_a_quarantine_after_kubectl_uncordon_cordons_again(there: RealCluster, gpu: str):
    before = there.state(gpu)
    there.rounds(begin(there, "quarantine", gpu))
    there.cordon(gpu, on=False)
    there.rounds(begin(there, "quarantine", gpu))
    assert there.is_cordoned(gpu)

    there.rounds(begin(there, "release", gpu))
    assert there.state(gpu) == before


def test_a_cordon_of_kubectl_stays_theirs(there: RealCluster, gpu: str):
    """L3: a cordon that we did not make is never undone."""
    there.cordon(gpu)
    before = there.state(gpu)
    quarantine = there.rounds(begin(there, "quarantine", gpu))
    release = there.rounds(begin(there, "release", gpu))

    assert node_of(quarantine).reason.startswith("Already cordoned")
    assert "Quarterdeck removes only cordons with its mark" in node_of(release).reason
    assert there.state(gpu) == before


def test_cancel_in_the_middle_evicts_nothing_more_and_release_cleans_up(
    there: RealCluster, gpu: str, other: str, team: str
):
    before = {name: there.state(name) for name in (gpu, other)}
    there.replicas(team, "web", gpu, gpu, other)
    there.budget(team, "web", app="web", covers=3, maxUnavailable=1)
    operation = there.rounds(begin(there, "drain", gpu, other, options={"at_once": 1}))
    evicted = there.asked(team)
    assert len(evicted) == 1
    commands.cancel(operation, actor="ben", reason="No.", now=there.clock())
    there.policy.delete_namespaced_pod_disruption_budget("web", team)
    operation = there.rounds(operation, 3)

    assert there.asked(team) == evicted
    assert (there.is_cordoned(gpu), there.is_cordoned(other)) == (True, False)
    there.rounds(begin(there, "release", gpu))
    assert {name: there.state(name) for name in (gpu, other)} == before


def test_a_dry_run_of_evictions_answers_as_the_drain_and_evicts_nothing(there: RealCluster, gpu: str, team: str):
    """lifecycle R21."""
    there.replicas(team, "web", gpu)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    there.replicas(team, "free", gpu)
    trial = there.rounds(begin(there, "try-drain", gpu))

    row = node_of(trial)
    assert (row.state, row.progress["tried"], row.progress["refused"]) == (NodeProgress.DONE, 2, 1)
    assert "needs 1 healthy pods and has 1 currently" in row.reason
    assert there.asked(team) == []


def test_the_account_may_evict_and_may_not_delete(there: RealCluster, gpu: str, team: str):
    (pod,) = there.replicas(team, "web", gpu)
    forced = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": team}}
    account = "--as=system:serviceaccount:quarterdeck:quarterdeck"
    path = f"/api/v1/namespaces/{team}/pods/{pod}/eviction"
    plain = kubectl("create", "--raw", path, account, "-f", "-", text=json.dumps(forced))
    deleted = kubectl("delete", "pod", pod, "-n", team, account)

    assert "names the UID of the pod" in plain.stderr
    assert "forbidden" in deleted.stderr.lower()
    assert there.asked(team) == []


def test_a_node_that_is_deleted_in_the_middle_of_its_drain_is_reported_as_gone(there: RealCluster, gpu: str, team: str):
    there.replicas(team, "web", gpu)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    operation = there.rounds(begin(there, "drain", gpu))
    there.core.delete_node(gpu)

    assert node_of(there.rounds(operation)).reason == f"{gpu} is gone."


def test_a_mandatory_webhook_that_is_away_is_asked_again(there: RealCluster, gpu: str, team: str):
    there.replicas(team, "web", gpu)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    webhook = {
        "name": "away.real.example", "rules": [rule], "failurePolicy": "Fail", "sideEffects": "None",
        "timeoutSeconds": 1, "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:9/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team}},
    }  # fmt: skip
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    apply(kind | {"metadata": {"name": "real-away"}, "webhooks": [webhook]})
    try:
        operation = begin(there, "drain", gpu)
        there.wait(
            lambda: "failed calling webhook" in node_of(there.rounds(operation)).reason,
            "a drain that names the webhook",
        )
        assert (node_of(operation).state, there.asked(team)) == (NodeProgress.RUNNING, [])
    finally:
        kubectl("delete", "validatingwebhookconfiguration", "real-away")
    there.wait(lambda: bool(there.rounds(operation) and there.asked(team)), "an eviction without the webhook")


def test_an_account_without_the_right_to_evict_fails_the_drain_with_the_rule_it_lacks(
    there: RealCluster, gpu: str, team: str
):
    there.replicas(team, "web", gpu)
    manifest = list(yaml.safe_load_all((RBAC / "quarterdeck.yaml").read_text()))
    role = next(one for one in manifest if one["kind"] == "ClusterRole")
    rules = [rule for rule in role["rules"] if rule["resources"] != ["pods/eviction"]]
    apply(role | {"rules": rules})
    try:
        operation = begin(there, "drain", gpu)
        there.wait(lambda: node_of(there.rounds(operation)).state == NodeProgress.FAILED, "a failed drain")
        assert "cannot be evicted" in node_of(operation).reason
        assert "pods/eviction" in node_of(operation).reason
        assert there.asked(team) == []
    finally:
        apply(role)


def test_a_test_job_runs_on_the_drained_node_and_leaves_nothing(there: RealCluster, gpu: str):
    """Nobody runs the kubelet, so there is no output: no answer is never a pass."""
    if not there.has_controllers:
        pytest.skip("the Job controller makes the pod of a Job")
    make.an_operand(there.cluster, "driver", namespace=STACK)
    there.rounds(begin(there, "drain", gpu), 3)
    operation = there.rounds(begin(there, "test", gpu, options={"test": "dcgm-3", "image": "dcgm:4"}))
    assert node_of(operation).state == NodeProgress.RUNNING, node_of(operation).reason
    there.wait(lambda: bool(there.pods(STACK)), "the pod of the Job")
    (pod,) = there.pods(STACK)
    there.run(STACK, pod, gpu)
    ended = {
        "exitCode": 0,
        "startedAt": "2026-11-29T00:00:00Z",
        "finishedAt": "2026-11-29T00:10:00Z",
        "reason": "Completed",
    }
    container = {
        "name": "test",
        "image": "x",
        "imageID": "x",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    there.report_pod(STACK, pod, ready=False, phase="Succeeded", containerStatuses=[container])
    there.wait(lambda: there.batch.list_namespaced_job(STACK).items[0].status.succeeded == 1, "the end of the Job")
    there.wait(lambda: there.rounds(operation).state == OperationState.FINISHED, "a result")

    assert "The kubelet does not give the output" in node_of(operation).reason
    assert node_of(operation).reason.startswith("dcgmi diag -r 3: unknown.")
    assert there.batch.list_namespaced_job(STACK).items == []


def test_the_hold_of_a_driver_leaves_the_node_byte_for_byte_as_before(there: RealCluster, gpu: str):
    before = there.state(gpu)
    hold = there.rounds(begin(there, "hold-driver", gpu))
    held = there.state(gpu)["metadata"]
    assert (held["labels"][UPGRADE_SKIP], held["annotations"][HELD_BY]) == ("true", hold.mark)

    free = there.rounds(begin(there, "free-driver", gpu))
    assert node_of(free).state == NodeProgress.DONE, node_of(free).reason
    assert there.state(gpu) == before


def test_an_image_is_pulled_by_a_pod_of_the_account_and_nothing_is_left(there: RealCluster, gpu: str):
    """Under restricted rights and the admission policy; nobody runs the kubelet, so its answer is written."""
    if not there.has_controllers:
        pytest.skip("the Job controller makes the pod of a Job")
    make.an_operand(there.cluster, "driver", namespace=STACK)
    operation = there.rounds(begin(there, "pull-image", gpu, options={"pulled_image": "registry.example/llm:1"}))
    assert node_of(operation).state == NodeProgress.RUNNING, node_of(operation).reason
    there.wait(lambda: bool(there.pods(STACK)), "the pod of the Job")
    (pod,) = there.pods(STACK)
    there.run(STACK, pod, gpu)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": "2026-11-29T00:00:00Z"}
    state = {"terminated": ended | {"finishedAt": "2026-11-29T00:00:01Z"}}
    container = {"name": "pull", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}
    there.report_pod(STACK, pod, ready=False, phase="Succeeded", containerStatuses=[container])
    there.wait(lambda: there.rounds(operation).state == OperationState.FINISHED, "a result")

    assert node_of(operation).state == NodeProgress.DONE, node_of(operation).reason
    assert there.batch.list_namespaced_job(STACK).items == []


def test_an_approver_evicts_one_pod_past_one_budget(there: RealCluster, gpu: str, team: str):
    """Z12, under the admission policy: a deletion without the UID, or with another grace period, is refused."""
    (pod,) = there.replicas(team, "web", gpu)
    there.budget(team, "web", app="web", covers=1, maxUnavailable=0)
    there.replicas(team, "other", gpu)
    there.budget(team, "other", app="other", covers=1, maxUnavailable=0)
    drain = there.rounds(begin(there, "drain", gpu, options={"deadline_s": 60}), 4)
    row = next(each for each in node_of(drain).progress["pods"] if each["name"] == f"{team}/{pod}")
    assert row["budget"] == "web"
    options = {"pod": row["name"], "pod_uid": row["uid"], "budget": "web"}
    given = {"actor": "ben", "reason": "The owner agreed.", "now": there.clock()}
    apply(*yaml.safe_load_all((RBAC / "delete-pods.yaml").read_text()))
    try:
        account = "--as=system:serviceaccount:quarterdeck:quarterdeck"
        by_hand = kubectl("delete", "pod", pod, "-n", team, account, "--wait=false")
        operation = begin(there, "delete-pod", gpu, options=options)
        commands.approve(operation, **given)
        operation = there.rounds(operation)
    finally:
        kubectl("delete", "-f", str(RBAC / "delete-pods.yaml"))

    assert "or deletes one by its UID" in by_hand.stderr
    assert there.asked(team) == [pod], node_of(operation).reason
    there.end_pods(team)
    assert node_of(there.rounds(operation)).state == NodeProgress.DONE
