"""What the rules foretell is what the simulated API server and operator then do, from the same objects."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.models import DisruptionBudget, Pod
from fleet.observer.mirror.rows.pod import pod_row
from fleet.observer.mirror.rows.policy import budget_row
from gpu.evictions import read_policy
from kube.structs import PodSeen
from kube.structs.cluster_objects import BudgetSeen
from rollouts.preflight.driver_facts import budget_facts, pod_facts
from rollouts.preflight.rules.disruption_budgets import keep_pods
from rollouts.preflight.rules.undeleted_pods import fail_their_node
from simulator.actors.gpu_operator import policy as operators
from simulator.actors.gpu_operator.filters import pick
from simulator.clock import Clock
from simulator.eviction import evict
from simulator.kinds import DISRUPTION_BUDGET
from simulator.quantities import wants_gpu
from simulator.refusals import Refused
from simulator.store import Store
from tests.rollouts.make import lines_of
from tests.rollouts.preflight.make import facts

Obj = dict[str, Any]
LABELS = st.dictionaries(st.sampled_from(["app", "team"]), st.sampled_from(["a", "b"]), max_size=2)
SELECTORS = st.one_of(
    st.none(),
    LABELS.map(lambda labels: {"matchLabels": labels}),
    st.sampled_from(["Exists", "DoesNotExist"]).map(
        lambda how: {"matchExpressions": [{"key": "app", "operator": how}]}
    ),
    st.sampled_from(["In", "NotIn"]).map(
        lambda how: {"matchExpressions": [{"key": "team", "operator": how, "values": ["a"]}]}
    ),
)
COUNTS = st.integers(0, 2)


@st.composite
def pods(draw: st.DrawFn, number: int) -> Obj:
    owner = draw(st.sampled_from(["ReplicaSet", "DaemonSet", ""]))
    resource = draw(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "cpu"]))
    ready = draw(st.booleans())
    metadata: Obj = {
        "name": f"pod-{number}",
        "namespace": "default",
        "uid": f"uid-{number}",
        "creationTimestamp": "2026-11-22T10:00:00Z",
        "labels": draw(LABELS),
    }
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "x", "uid": "x", "controller": True}]
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": "gpu-1",
            "containers": [{"name": "main", "image": "x", "resources": {"limits": {resource: "1"}}}],
            "volumes": [{"name": "tmp", "emptyDir": {}}] if draw(st.booleans()) else [],
        },
        "status": {
            "phase": draw(st.sampled_from(["Running", "Running", "Pending"])),
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": None}],
        },
    }


@st.composite
def budgets(draw: st.DrawFn, number: int) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": "default", "uid": f"uid-{number}", "generation": 1},
        "spec": {
            "maxUnavailable": 1,
            "selector": draw(SELECTORS),
            "unhealthyPodEvictionPolicy": draw(st.sampled_from(["IfHealthyBudget", "AlwaysAllow"])),
        },
        "status": {
            "observedGeneration": draw(st.sampled_from([0, 1, 1])),
            "disruptionsAllowed": draw(COUNTS),
            "currentHealthy": draw(COUNTS),
            "desiredHealthy": draw(COUNTS),
            "expectedPods": 2,
        },
    }


def several(of: Any) -> st.SearchStrategy[list[Obj]]:
    return st.integers(1, 3).flatmap(lambda number: st.tuples(*(of(each) for each in range(number))).map(list))


def as_facts(pod: Obj):
    return pod_facts(Pod(**pod_row(msgspec.convert(pod, PodSeen, strict=False))))


def is_refused(store: Store, pod: Obj) -> bool:
    try:
        evict(store, pod, grace_s=None, dry_run=True)
    except Refused:
        return True
    return False


@settings(deadline=None)
@given(several(pods), several(budgets))
def test_an_eviction_is_foretold_to_be_refused_where_the_api_server_refuses_it(there, covering):
    store = Store(Clock())
    for budget in covering:
        store.seed(DISRUPTION_BUDGET, budget, "default")
    rows = [DisruptionBudget(**budget_row(msgspec.convert(each, BudgetSeen, strict=False))) for each in covering]

    refusing = keep_pods(facts(*map(as_facts, there), budgets=[budget_facts(row) for row in rows]))

    told = {line.partition(" on ")[0] for check in refusing for line in lines_of(check)}
    refused = {f"default/{pod['metadata']['name']}" for pod in there if wants_gpu(pod) and is_refused(store, pod)}
    assert told == refused


@settings(deadline=None)
@given(several(pods), st.booleans(), st.booleans())
def test_a_node_is_foretold_not_to_be_emptied_where_the_operator_gives_up(there, is_forced, deletes_empty_dir):
    policy = {"podDeletion": {"force": is_forced, "deleteEmptyDir": deletes_empty_dir}}

    told = list(fail_their_node(facts(*map(as_facts, there), policy=read_policy(policy))))

    users = [pod for pod in there if wants_gpu(pod)]
    picked = pick(there, operators.read_policy(policy).pod_deletion, wants_gpu)
    assert bool(told) is (len(picked.pods) != len(users))
