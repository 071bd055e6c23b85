"""Both ways of changing the driver, and what is told of each before a plan starts."""

import json
import shlex
from dataclasses import replace

import pytest

from rollouts.components import COMPONENTS, component_of
from rollouts.components.base import Phase
from rollouts.components.driver import DriverFacts
from rollouts.components.driver_crd import DriverCrd
from rollouts.components.driver_policy import DriverPolicy
from tests.rollouts.make import NEW, OLD

POLICY = {"autoUpgrade": True, "maxParallelUpgrades": 1, "waitForCompletion": {"podSelector": "job"}}
BY_CRD = DriverFacts(
    kind="NVIDIADriver",
    object_version=OLD,
    to_version=NEW,
    state="ready",
    message="",
    use_precompiled=False,
    sandbox_workloads=False,
    policy_uses_crd=True,
    has_policy=True,
    upgrade_policy=POLICY,
    owned_by=(),
    nodes=3,
)
BY_POLICY = replace(BY_CRD, kind="ClusterPolicy", policy_uses_crd=False)
BOTH = [DriverCrd("h100"), DriverPolicy("cluster-policy")]
EACH = pytest.mark.parametrize("component", BOTH, ids=lambda one: one.kind)


def codes(component, facts: DriverFacts) -> list[str]:
    return [check.code for check in component.preflight(facts)]


def test_each_is_found_by_the_kind_that_it_writes():
    assert [component_of("driver", kind, "x").kind for _, kind in COMPONENTS] == ["NVIDIADriver", "ClusterPolicy"]


@EACH
def test_where_all_is_in_order_nothing_stands_against_it(component):
    assert not codes(component, BY_POLICY if component.kind == "ClusterPolicy" else BY_CRD)


@EACH
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"state": "notReady"}, "Its state is notReady"),
        ({"state": "notReady", "message": "OperandNotReady"}, "OperandNotReady"),
        ({"state": ""}, "The status of the driver object names no state"),
        ({"state": "", "message": "ConflictingNodeSelector"}, "ConflictingNodeSelector"),
    ],
)
def test_an_object_is_in_order_only_where_the_operator_says_so(component, given, words):
    """It writes a state whenever it looks at one: blank is one that it has not looked at yet."""
    row = BY_POLICY if component.kind == "ClusterPolicy" else BY_CRD

    (check,) = component.preflight(replace(row, **given))

    assert check.code == "not-ready"
    assert words in check.sentence


@EACH
def test_what_is_written_without_us_is_what_the_patch_writes(component):
    """Z33."""
    patch = component.patch(OLD, NEW)
    words = shlex.split(component.command(NEW))

    place = json.loads(words[-1])
    for part in patch.path:
        place = place[part]
    assert place == NEW
    assert words[:4] == ["kubectl", "patch", component.kind.lower(), component.name]


@EACH
@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("", Phase.UNKNOWN),
        ("upgrade-required", Phase.QUEUED),
        ("drain-required", Phase.AT_WORK),
        ("a-state-of-next-year", Phase.AT_WORK),
        ("upgrade-failed", Phase.FAILED),
        ("upgrade-done", Phase.DONE),
    ],
)
def test_what_the_upgrade_controller_says_is_read_as_a_phase(component, state: str, phase: Phase):
    assert component.phase(state) is phase


@EACH
@pytest.mark.parametrize("version", ["", "sha256:0123", "580"])
def test_without_a_full_version_there_is_no_rollback(component, version: str):
    facts = replace(BY_POLICY if component.kind == "ClusterPolicy" else BY_CRD, object_version=version)

    assert component.no_rollback(version)
    assert "no-rollback" in codes(component, facts)


@EACH
@pytest.mark.parametrize(
    "version", ["580", "sha256:0123", "580.95.05-ubuntu22.04", "580.95.05-r2", "580-6.8.0-60-generic"]
)
def test_what_no_node_names_as_loaded_is_no_version_to_go_to(component, version: str):
    """Nodes name the number alone: of a suffix, a branch or a digest nobody could tell that it is there."""
    facts = replace(BY_POLICY if component.kind == "ClusterPolicy" else BY_CRD, to_version=version)

    assert "version" in codes(component, facts)


@EACH
def test_it_has_changed_when_its_pod_and_its_node_say_so(component):
    assert component.has_changed(wanted="580.95.05", loaded="580.95.5", is_in_sync=True)
    assert not component.has_changed(wanted=NEW, loaded=NEW, is_in_sync=False)
    assert not component.has_changed(wanted=NEW, loaded="", is_in_sync=True)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"policy_uses_crd": True}, "crd-on"),
        ({"is_driver_off": True}, "driver-off"),
        ({"state": "ignored"}, "ignored"),
        ({"sandbox_workloads": True}, "sandbox"),
        ({"use_precompiled": True}, "precompiled"),
        ({"upgrade_policy": POLICY | {"autoUpgrade": False}}, "auto-upgrade"),
        ({"upgrade_policy": POLICY | {"maxParallelUpgrades": 0}}, "parallel"),
        ({"owned_by": ("Helm release gpu-operator/gpu-operator",)}, "owned"),
    ],
)
def test_a_policy_that_does_not_run_the_driver_is_no_lever(given: dict, code: str):
    """Z2, Z9."""
    assert code in codes(DriverPolicy("cluster-policy"), replace(BY_POLICY, **given))


@pytest.mark.parametrize("field", ["version", "upgradePolicy", "nodeSelector", "default"])
def test_what_is_not_of_the_template_is_left_out(field: str):
    given = {field: {"a": 1}, "env": []}

    assert DriverCrd("h100").template(given) == {"env": []}
    assert DriverPolicy("cluster-policy").template({"driver": given}) == {"driver.env": []}


def test_of_a_policy_only_what_makes_driver_pods_is_the_template():
    """Z11: other operands have versions of their own, which change no driver pod."""
    spec = {"driver": {"version": OLD}, "toolkit": {"version": "1"}, "daemonsets": {"tolerations": []}, "gds": {}}

    assert DriverPolicy("cluster-policy").template(spec) == {"daemonsets": {"tolerations": []}, "gds": {}}


@EACH
@pytest.mark.parametrize("odd", [None, "x", 5, [1]])
def test_parts_of_a_policy_that_are_no_such_thing_end_no_preflight(component, odd):
    parts = dict.fromkeys(("podDeletion", "drain", "waitForCompletion", "maxParallelUpgrades"), odd)

    told = component.warnings(replace(BY_CRD, upgrade_policy=POLICY | parts))

    assert [check.code for check in told] == ["no-wait"]
