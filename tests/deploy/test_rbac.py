from pathlib import Path

import pytest
import yaml

from fleet.freshness.kinds import rule_for
from fleet.observer.mirror.kinds import KINDS
from fleet.web.cluster_exporters import RULE as EXPORTERS
from gpu.remediations import KINDS as REMEDIATIONS
from operations.node_exclusion import AUTOSCALER_STATUS

RBAC = Path(__file__).resolve().parents[2] / "deploy" / "rbac"
READS = {"get", "list", "watch"}


def rules(manifest: str) -> list[dict]:
    documents = yaml.safe_load_all((RBAC / manifest).read_text())
    return [rule for document in documents for rule in document.get("rules", [])]


def test_who_only_observes_can_write_nothing():
    verbs = {verb for rule in rules("observe-only.yaml") for verb in rule["verbs"]}

    assert verbs == READS


@pytest.mark.parametrize("manifest", ["quarterdeck.yaml", "observe-only.yaml"])
def test_no_rule_has_a_wildcard_or_reads_a_secret(manifest: str):
    named = {word for rule in rules(manifest) for words in rule.values() for word in words}

    assert "*" not in named
    assert "secrets" not in named


def test_whoever_acts_also_sees_all_that_who_observes_sees():
    seen = {
        (resource, verb)
        for rule in rules("observe-only.yaml")
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    acting = {
        (resource, verb)
        for rule in rules("quarterdeck.yaml")
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert seen <= acting


def test_nothing_is_deleted_but_our_own_objects_and_pods_are_only_evicted():
    writes = {
        (resource, verb)
        for rule in rules("quarterdeck.yaml")
        for resource in rule["resources"]
        for verb in set(rule["verbs"]) - READS
    }

    deleting = [rule for rule in rules("quarterdeck.yaml") if "delete" in rule["verbs"]]

    by_nvsentinel = {"rebootnodes", "gpuresets", "maintenancerequests"}
    assert {resource for resource, verb in writes if verb == "delete"} == {"jobs", "leases"} | by_nvsentinel
    assert [rule["resourceNames"] for rule in deleting if "leases" in rule["resources"]] == [["quarterdeck"]]
    kinds = {"nodes", "nvidiadrivers", "clusterpolicies", "leases", "jobs", "pods/eviction"}
    kinds |= by_nvsentinel | {"baremetalhosts"}  # the policy narrows these to our own, and one annotation
    assert {resource for resource, _ in writes} == kinds


def test_work_of_others_is_listed():
    may = granted("quarterdeck.yaml")
    asked = {("ClusterRole", kind.group, f"{name.lower()}s") for name, kind in REMEDIATIONS.items()}
    assert {right: may.get(right) for right in asked} == {right: {"list"} for right in asked}


def test_pods_are_deleted_only_with_the_optional_manifest():
    assert [(rule["resources"], rule["verbs"]) for rule in rules("delete-pods.yaml")] == [(["pods"], ["delete"])]


def test_jobs_are_made_and_deleted_in_the_operators_namespace_only():
    documents = yaml.safe_load_all((RBAC / "quarterdeck.yaml").read_text())
    roles = {
        (one["kind"], one["metadata"].get("namespace")): rule["verbs"]
        for one in documents
        for rule in one.get("rules", [])
        if "jobs" in rule["resources"] and not set(rule["verbs"]) <= READS
    }

    assert roles == {("Role", "gpu-operator"): ["create", "delete"]}


def granted(manifest: str) -> dict[tuple[str, str, str], set[str]]:
    """The verbs, by kind of role, API group and resource."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for document in yaml.safe_load_all((RBAC / manifest).read_text()):
        for rule in document.get("rules", []):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found.setdefault((document["kind"], group, resource), set()).update(rule["verbs"])
    return found


def wanted() -> dict[tuple[str, str, str], set[str]]:
    """What `fleet.freshness.kinds` tells people to allow for every kind that is watched."""
    rules = [(":" in kind, rule) for kind in KINDS for rule in yaml.safe_load(rule_for(kind))]
    return {
        ("Role" if is_narrow else "ClusterRole", group, resource): set(rule["verbs"])
        for is_narrow, rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_who_only_observes_may_read_every_kind_we_watch_and_nothing_else():
    asked = {("Role", "", "pods/log"): {"get"}, ("Role", "", "pods/proxy"): {"get"}}

    assert granted("observe-only.yaml") == wanted() | asked


def test_whoever_acts_may_watch_every_kind_too():
    acting = granted("quarterdeck.yaml")

    assert {what for what, verbs in wanted().items() if not verbs <= acting.get(what, set())} == set()


@pytest.mark.parametrize("manifest", ["quarterdeck.yaml", "observe-only.yaml"])
def test_config_maps_logs_and_metrics_are_read_in_single_namespaces_only(manifest: str):
    everywhere = {resource for role, _, resource in granted(manifest) if role == "ClusterRole"}

    assert not everywhere & {"configmaps", "pods/log", "pods/proxy"}


def test_what_the_cluster_page_tells_to_allow_for_exporters_is_what_the_manifests_grant():
    (rule,) = yaml.safe_load(rule_for(EXPORTERS))

    assert rule == {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}
    assert rule in rules("observe-only.yaml")
    assert rule in rules("quarterdeck.yaml")


def test_of_kube_system_only_whether_the_autoscaler_runs_is_read():
    documents = list(yaml.safe_load_all((RBAC / "quarterdeck.yaml").read_text()))
    (role,) = [one for one in documents if one["kind"] == "Role" and one["metadata"]["namespace"] == "kube-system"]
    namespace, name = AUTOSCALER_STATUS

    assert role["metadata"]["namespace"] == namespace
    verbs = ["get", "list", "watch"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": verbs}]
