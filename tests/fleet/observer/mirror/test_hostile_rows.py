"""A cluster may say anything: each row still fits its columns."""

from typing import Any

import msgspec
from django.db import models
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.models import Node, Pod
from fleet.observer.mirror.diff import fingerprint, remember
from fleet.observer.mirror.rows.node import node_row
from fleet.observer.mirror.rows.pod import pod_row
from kube.structs import NodeSeen, PodSeen
from tests.fleet.documents import node_document, pod_document
from tests.make import NOON

NAMES = st.sampled_from(
    [
        "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.shared",
        "nvidia.com/mig-", "nvidia.com/gpu.\x00", "amd.com/gpu", "amd.com/cpx_nps4", "gpu.intel.com/i915",
        "habana.ai/gaudi", "nvidia.com/GA102GL_A10", "cpu",
    ]
)  # fmt: skip
QUANTITIES = st.one_of(
    st.text(max_size=20),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["1e999", "-8", "9" * 400, "8Ei", "8\x00", "NaN", "Infinity", "0.5", "٣"]),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False, allow_infinity=False),
)
KEYS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.replicas", "nvidia.com/gpu.memory",
            "nvidia.com/gpu.sharing-strategy", "nvidia.com/mig-1g.10gb.count", "nvidia.com/mig-1g.10gb.replicas",
            "nvidia.com/mig-a b=c/d*9.count", "nvidia.com/mig.config", "nvidia.com/mig.config.state",
            "nvidia.com/gpu.clique", "nvidia.com/cuda.driver-version.full", "amd.com/gpu.vram",
            "amd.com/compute-memory-partition", "gpu.intel.com/device.count", "karpenter.sh/capacity-type",
            "feature.node.kubernetes.io/pci-10de.present",
        ]
    ),
)  # fmt: skip
VALUES = st.one_of(
    st.text(max_size=300),
    st.sampled_from(["true", "8", "-1", str(2**63), "A-MIG-1g.10gb-SHARED", "A-MIG-", "mps", "x" * 1_000_000, "\x00"]),
)
LABELS = st.dictionaries(KEYS, VALUES, max_size=8)
AMOUNTS = st.dictionaries(NAMES, QUANTITIES, max_size=6)


def fits(row: dict[str, Any], model: type[models.Model]) -> None:
    for name, value in row.items():
        column = model._meta.get_field(name)
        if isinstance(column, models.CharField):
            assert len(value) <= column.max_length, name
        if isinstance(column, models.PositiveIntegerField) and value is not None:
            assert 0 <= value < 2**31, name
    assert b"\\u0000" not in msgspec.json.encode(row)
    fingerprint(row)


@settings(max_examples=150)
@given(labels=LABELS, capacity=AMOUNTS, allocatable=AMOUNTS, later=LABELS)
def test_any_labels_and_quantities_of_a_node_fit_its_row(labels, capacity, allocatable, later):
    document = node_document(labels=labels, annotations=labels)
    document["status"] |= {"capacity": capacity, "allocatable": allocatable}
    seen = msgspec.convert(document, NodeSeen, strict=False)

    row = remember(None, node_row(seen), now=NOON)
    document["metadata"]["labels"] = later
    again = remember(row, node_row(msgspec.convert(document, NodeSeen, strict=False)), now=NOON)

    fits(row, Node)
    fits(again, Node)


@settings(max_examples=100)
@given(requests=AMOUNTS, labels=LABELS, words=st.text(), restarts=st.integers(-(2**62), 2**62), device=VALUES)
def test_anything_that_a_pod_says_fits_its_row(requests, labels, words, restarts, device):
    died = {"terminated": {"exitCode": 1, "reason": words, "message": words}}
    held = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": device, "health": words}]}]
    status = {"name": words, "restartCount": restarts, "lastState": died, "allocatedResourcesStatus": held}
    container = {"name": words, "image": words, "resources": {"requests": requests, "limits": requests}}
    document = pod_document(labels=labels, containers=[container], init_containers=[container], statuses=[status])
    document["spec"] |= {"resourceClaims": [{"name": words, "resourceClaimName": words}], "runtimeClassName": words}

    row = pod_row(msgspec.convert(document, PodSeen, strict=False))

    fits(row, Pod)


def test_ten_thousand_conditions_are_read():
    document = node_document()
    document["status"]["conditions"] = [{"type": f"C{n}", "status": "Maybe"} for n in range(10_000)]

    row = node_row(msgspec.convert(document, NodeSeen))

    assert row["is_ready"] is None


def test_a_label_of_a_megabyte_is_left_out_and_the_others_stay():
    row = node_row(msgspec.convert(node_document(labels={"big": "x" * 2**20, "zone": "a"}), NodeSeen))

    assert row["labels"] == {"zone": "a"}


def test_markup_stays_text():
    row = node_row(msgspec.convert(node_document(name="<script>alert(1)</script>"), NodeSeen))

    assert row["name"] == "<script>alert(1)</script>"
