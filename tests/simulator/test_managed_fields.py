"""Whose a node's cordon is, as the API server keeps it."""

import pytest

from simulator.kinds import NODE
from simulator.managed_fields import manager_of
from simulator.store import Store
from tests.simulator.wire.objects import a_node

CORDON, UNCORDON = {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}


@pytest.fixture
def store():
    store = Store()
    store.create(NODE, a_node("gpu-001"))
    return store


def managers(node):
    return [each["manager"] for each in node["metadata"].get("managedFields", ())]


def test_who_names_no_manager_is_known_by_its_program():
    assert manager_of("", "kubectl/v1.34.1 (linux/amd64) kubernetes/93248f9") == "kubectl"
    assert manager_of("quarterdeck", "python-urllib3/2") == "quarterdeck"


def test_a_cordon_is_of_who_set_it_until_it_is_gone(store):
    cordoned = store.patch(NODE, "gpu-001", CORDON, how="merge", manager="kubectl")
    again = store.patch(NODE, "gpu-001", CORDON, how="merge", manager="gpu-operator")
    labelled = store.patch(NODE, "gpu-001", {"metadata": {"labels": {"a": "b"}}}, how="merge", manager="other")
    gone = store.patch(NODE, "gpu-001", UNCORDON, how="merge", manager="gpu-operator")

    assert [managers(each) for each in (cordoned, again, labelled, gone)] == [["kubectl"]] * 3 + [[]]
    assert cordoned["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:unschedulable": {}}}


def test_nobody_has_what_nobody_said(store):
    assert managers(store.patch(NODE, "gpu-001", CORDON, how="merge")) == []
