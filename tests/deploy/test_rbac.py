from pathlib import Path

import pytest
import yaml

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


def test_nothing_is_deleted_and_no_pod_is_touched():
    writes = {
        (resource, verb)
        for rule in rules("quarterdeck.yaml")
        for resource in rule["resources"]
        for verb in set(rule["verbs"]) - READS
    }

    assert "delete" not in {verb for _, verb in writes}
    assert {resource for resource, _ in writes} == {"nodes", "nvidiadrivers", "leases"}
