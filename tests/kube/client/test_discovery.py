from typing import Any

import msgspec
import pytest

from kube.client.discovery import NotServed, meaning_of_403, meaning_of_404, served
from kube.client.errors import Absent, Forbidden, NotAnApiServer
from kube.resources import EVENTS, GPU_CLUSTERS, NODES, RESOURCE_SLICES, Resource


class Answering:
    """An API server of which only discovery is asked."""

    def __init__(self, *versions: str, refusal: Exception | None = None) -> None:
        self.versions = versions
        self.refusal = refusal
        self.asked: list[str] = []

    def get(self, path: str) -> bytes:
        self.asked.append(path)
        if self.refusal:
            raise self.refusal
        listed = [{"groupVersion": f"resource.k8s.io/{version}", "version": version} for version in self.versions]
        return msgspec.json.encode({"kind": "APIGroup", "name": "resource.k8s.io", "versions": listed})


def look(server: Any, resource: Resource[Any] = RESOURCE_SLICES) -> str:
    return served(server, resource).path()


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [(["v1", "v1beta2", "v1beta1"], "v1"), (["v1beta1", "v1beta2"], "v1beta2"), (["v1alpha3", "v1beta1"], "v1beta1")],
)
def test_the_newest_version_that_both_know_is_read(versions, chosen):
    assert look(Answering(*versions)) == f"/apis/resource.k8s.io/{chosen}/resourceslices"


def test_versions_that_we_do_not_read_are_named():
    with pytest.raises(Absent, match=r"serves resource.k8s.io as v1alpha3, not as v1 or v1beta2 or v1beta1"):
        look(Answering("v1alpha3"))


def test_a_group_that_is_not_installed_is_named():
    with pytest.raises(Absent, match=r"The API group resource.k8s.io is not installed"):
        look(Answering(refusal=Absent("HTTP 404")))


def test_where_discovery_is_closed_the_list_itself_will_tell():
    assert look(Answering(refusal=Forbidden("no"))) == "/apis/resource.k8s.io/v1/resourceslices"


def test_a_kind_of_one_version_costs_no_question():
    server = Answering()

    assert look(server, NODES) == "/api/v1/nodes"
    assert server.asked == []


class Serving:
    """An API server of which only some paths are there."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def get(self, path: str) -> bytes:
        if path not in self.answers:
            raise Absent("HTTP 404")
        return msgspec.json.encode(self.answers[path])


def names(*plurals: str) -> dict[str, Any]:
    return {"kind": "APIResourceList", "resources": [{"name": plural} for plural in plurals]}


GROUPS = {"kind": "APIGroupList", "groups": [{"name": "apps"}]}


@pytest.mark.parametrize(
    ("answers", "resource", "meaning"),
    [
        ({"/apis": GROUPS}, GPU_CLUSTERS, NotServed),
        ({"/apis": GROUPS, "/apis/nvidia.com/v1alpha1": names("nvidiadrivers")}, GPU_CLUSTERS, NotServed),
        ({"/apis/nvidia.com/v1alpha1": names("gpuclusters")}, GPU_CLUSTERS, NotAnApiServer),
        ({}, GPU_CLUSTERS, Absent),
        ({"/api/v1": names("pods")}, NODES, NotAnApiServer),
        ({"/api/v1": names("pods", "nodes")}, NODES, NotAnApiServer),
        ({}, NODES, NotAnApiServer),
    ],
)
def test_a_404_is_believed_where_discovery_says_so_too(answers, resource, meaning):
    """A proxy that answers 404 for everything must not delete a cluster."""
    assert type(meaning_of_404(Serving(answers), resource)) is meaning


@pytest.mark.parametrize(
    ("answers", "resource", "is_absent"),
    [
        ({"/apis": GROUPS}, GPU_CLUSTERS, True),
        ({"/apis/nvidia.com/v1alpha1": names("nvidiadrivers")}, GPU_CLUSTERS, True),
        ({"/apis/nvidia.com/v1alpha1": names("gpuclusters")}, GPU_CLUSTERS, False),
        ({}, GPU_CLUSTERS, False),  # a proxy
        ({}, EVENTS, False),
    ],
)
def test_a_403_of_a_kind_that_is_not_served_is_absence(answers, resource, is_absent):
    refusal = Forbidden("no")

    meaning = meaning_of_403(Serving(answers), resource, refusal)

    assert isinstance(meaning, NotServed) is is_absent
    assert is_absent or meaning is refusal
