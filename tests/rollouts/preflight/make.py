"""Pure builders of what is seen on the nodes. Each is in good order; name only what the test is about."""

from typing import Any

from gpu.evictions import EvictionPolicy, read_policy
from kube.selectors import of_object
from rollouts.preflight.facts import BudgetFacts, PodFacts, PreflightFacts

MODEL = {"app": "model"}


def a_pod(name: str = "team-a/model-0", **given: Any) -> PodFacts:
    """A tenant's running pod with a GPU, under a ReplicaSet."""
    row: dict[str, Any] = {
        "namespace": name.partition("/")[0],
        "node": "node-1",
        "owner_kind": "ReplicaSet",
        "resources": ("nvidia.com/gpu",),
        "labels": MODEL,
    }
    return PodFacts(name, **row | given)


def a_budget(name: str = "model", *, selector: Any = None, **given: Any) -> BudgetFacts:
    """It lets one of its pods go."""
    row: dict[str, Any] = {"namespace": "team-a", "allowed": 1, "healthy": 2, "needed": 1}
    return BudgetFacts(name, selector=of_object(selector or {"matchLabels": MODEL}), **row | given)


def a_policy(**given: Any) -> EvictionPolicy:
    """As `upgradePolicy` has it: a_policy(podDeletion={"force": True})."""
    return read_policy(given)


def facts(*pods: PodFacts, **given: Any) -> PreflightFacts:
    row: dict[str, Any] = {"policy": a_policy(), "budgets": ()}
    return PreflightFacts(pods=pods, **row | given)
