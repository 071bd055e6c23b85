"""The manifest that people are told to apply gives what a start asks for, and a start asks for what rounds use."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet.models import Cluster, ResourceSlice
from kube.client import AccessAsked
from rollouts.commands import plan_control
from rollouts.live_checks.required_rights import needed, spared
from rollouts.models import Plan
from simulator.rbac import Act
from tests.make import NOON
from tests.rollouts.engine import ground as grounds
from tests.rollouts.engine.conftest import ground, start  # noqa: F401 (fixtures)
from tests.rollouts.engine.ground import CANARY, NODES, OLD, Ground
from tests.rollouts.engine.test_live import offer
from tests.rollouts.live_checks.rights import asked_in, unnamed, unused

MANIFEST = Path(__file__).parents[3] / "deploy" / "rbac" / "quarterdeck.yaml"
OWN, OPERATORS = "quarterdeck", "gpu-operator"


def rules_of(namespace: str) -> Iterator[dict[str, Any]]:
    for document in yaml.safe_load_all(MANIFEST.read_text()):
        is_there = document["kind"] == "Role" and document["metadata"]["namespace"] == namespace
        if document["kind"] == "ClusterRole" or is_there:
            yield from document["rules"]


def is_given(access: AccessAsked) -> bool:
    wanted = {"verbs": access.verb, "apiGroups": access.resource.group, "resources": access.resource.plural}
    rules = (rule for rule in rules_of(access.namespace) if "resourceNames" not in rule)
    return any(all(value in rule[key] for key, value in wanted.items()) for rule in rules)


@pytest.mark.parametrize("kind", ["NVIDIADriver", "ClusterPolicy"])
def test_the_manifest_gives_each_right_that_is_asked_for(kind: str):
    plan = Plan(cluster=Cluster(own_namespace=OWN), object_kind=kind, object_name="x")
    asked = [*needed(plan, [OPERATORS], with_slices=True, with_jobs=True), *spared([OPERATORS])]

    assert [access for access in asked if not is_given(access)] == []
    assert {access.verb for access in asked} == {"get", "list", "patch", "create", "update", "delete"}


SPARED = {  # refused, a round does without
    Act("get", "", "configmaps", namespace="kube-system", name="cluster-autoscaler-status"),
    Act("list", "batch", "jobs"),  # which Jobs are left at the end of a plan
}


@pytest.mark.rounds
def test_a_start_asks_for_every_right_that_rounds_use_and_for_no_other(
    ground: Ground,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
):
    """A plan that lets a node go, is halted and given up, in a cluster in which a DRA driver names a node's driver."""
    used: set[Act] = set()
    run_round = grounds.run_round
    monkeypatch.setattr(
        grounds, "run_round", lambda *plan, **given: used.update(asked_in(ground, partial(run_round, *plan, **given)))
    )
    ground.walk()
    ground.round()
    assert ground.releases() == [CANARY]
    plan_control.halt(ground.plan, actor=ground.ada, reason="Stop.", now=ground.clock())
    ground.round()
    plan_control.abort(ground.plan, actor=ground.ada, reason="No.", now=ground.clock())
    for name in NODES:
        ground.set_state(name, "upgrade-done")
    for _ in range(9):
        if ground.held():
            ground.round()
    ground.look()
    offer(ground, CANARY, OLD)
    row = {"devices": [], "driver": "gpu.nvidia.com", "pool": CANARY, "node_name": CANARY}
    ResourceSlice.objects.create(cluster=ground.cluster, uid="s", name="s", changed_at=NOON, **row)
    ground.round(look=False)
    assert ground.plan.state == "aborted", ground.plan.waiting_for

    rights = list(needed(ground.plan, [OPERATORS], with_slices=True))

    assert unnamed(used - SPARED, rights) == set()
    assert unused(used, rights) == []
