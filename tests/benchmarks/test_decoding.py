"""Which of the official client's models a list is held against."""

import json

import pytest
from kubernetes.client import models

from benchmarks.observing.decoding import model_of, typed_models_s


def head(api_version: str, kind: str) -> bytes:
    return json.dumps({"kind": kind, "apiVersion": api_version, "items": []}, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("api_version", "kind", "model"),
    [
        ("v1", "PodList", "V1PodList"),
        ("apps/v1", "DaemonSetList", "V1DaemonSetList"),
        ("resource.k8s.io/v1beta1", "ResourceSliceList", "V1beta1ResourceSliceList"),
        ("v1", "EventList", "CoreV1EventList"),
        ("events.k8s.io/v1", "EventList", "EventsV1EventList"),
    ],
)
def test_a_list_of_kubernetes_has_theirs(api_version: str, kind: str, model: str):
    assert model_of(head(api_version, kind)) == model
    assert hasattr(models, model)


@pytest.mark.parametrize("body", [head("nvidia.com/v1alpha1", "NVIDIADriverList"), b"", b"{}", b"\xff"])
def test_what_they_have_no_model_for_stays_as_it_is(body: bytes):
    assert model_of(body) == "object"


class Pages:
    def pages(self, path: str) -> list[bytes]:
        return [head("v1", "PodList"), head("nvidia.com/v1alpha1", "NVIDIADriverList")]


def test_every_list_is_decoded():
    assert typed_models_s(Pages(), ["/api/v1/pods"]) > 0
