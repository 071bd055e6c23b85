"""Which OpenShift it is, and by what that is told."""

import pytest

from gpu.compatibility import Support
from tests.gpu.compatibility.answers import verdict

OLD = "Red Hat Enterprise Linux CoreOS 418.94.202509100653-0"
NEW = "Red Hat Enterprise Linux CoreOS 9.6.20250826-1 (Plow)"  # from 4.19 on it names RHEL's version


@pytest.mark.parametrize(
    ("facts", "openshift"),
    [
        ({"os": OLD, "kubernetes": "v1.32.1"}, "4.18"),
        ({"os": NEW, "openshift": "4.21", "kubernetes": "v1.32.1"}, "4.21"),
        ({"os": NEW, "kubernetes": "v1.32.9"}, "4.19"),
        ({"os": NEW, "kubernetes": "v1.35.2"}, "4.22"),
    ],
)
def test_the_node_says_it_or_its_kubernetes_tells_it(facts, openshift):
    assert f"OpenShift {openshift} is in the range that NVIDIA validated" in verdict("platform", **facts).sentence


def test_what_kubernetes_tells_is_said_to_be_told_by_it():
    said = verdict("platform", os=NEW, kubernetes="v1.32.9").sentence

    assert "Derived from Kubernetes 1.32, which OpenShift 4.19 is built on." in said
    assert "Derived from" not in verdict("platform", os=NEW, openshift="4.19").sentence


def test_a_kubernetes_that_no_openshift_is_known_for_leaves_it_open():
    said = verdict("platform", os=NEW, kubernetes="v1.41.0")

    assert said.answer is Support.UNKNOWN
    assert "the version of OpenShift cannot be read" in said.sentence
