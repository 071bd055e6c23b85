"""The manifest that people are told to apply gives what a start asks for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fleet.models import Cluster
from kube.client import AccessAsked
from rollouts.asking.needs import needed, spared
from rollouts.models import Plan

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
    asked = [*needed(plan, [OPERATORS]), *spared([OPERATORS])]

    assert [access for access in asked if not is_given(access)] == []
    assert {access.verb for access in asked} == {"get", "list", "patch", "create", "update", "delete"}
