"""Pods that ask KAI for a part of a GPU by an annotation request no GPU resource."""

import msgspec
import pytest

from fleet.observer.mirror.rows.pod import is_kept, pod_row
from fleet.observer.mirror.watch_scope import WatchScope
from kube.structs import PodSeen
from tests.fleet.documents import a_pod_seen


def asking(annotations: dict[str, str]) -> PodSeen:
    document = msgspec.to_builtins(a_pod_seen(phase="Pending"))
    document["metadata"] |= {"annotations": annotations}
    document["spec"] |= {"nodeName": "", "containers": [{"name": "main"}]}
    return msgspec.convert(document, PodSeen, strict=False)


@pytest.mark.parametrize(
    ("annotations", "is_tenants"),
    [({"gpu-fraction": "0.2"}, True), ({"gpu-memory": "2000"}, True), ({"gpu-model": "a"}, False)],
)
def test_a_pod_that_waits_for_a_part_of_a_gpu_is_a_tenants(annotations: dict[str, str], is_tenants: bool):
    seen = asking(annotations)
    row = pod_row(seen)

    assert (is_kept(seen, WatchScope()), row["is_tenant"], row["gpus"]) == (is_tenants, is_tenants, 0)
