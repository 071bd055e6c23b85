"""Which labels contradict what discovery reports."""

import pytest

from gpu.label_conflicts import MOST, label_conflicts

H200 = {"nvidia.com/gpu.product": "NVIDIA-H200"}
PCI = "feature.node.kubernetes.io/pci-{}.present"


def conflicts(labels: dict[str, str], *, offers_nvidia: bool = True) -> list[str]:
    return [row["label"] for row in label_conflicts(labels, offers_nvidia=offers_nvidia)]


def test_a_label_that_names_another_model_is_named_with_what_discovery_reports():
    rows = label_conflicts({**H200, "example.org/gpu-type": "a100-80gb"}, offers_nvidia=True)

    assert rows == [
        {
            "label": "example.org/gpu-type",
            "value": "a100-80gb",
            "reported": "NVIDIA-H200",
            "reporter": "nvidia.com/gpu.product",
        }
    ]


@pytest.mark.parametrize(
    "labels",
    [
        {"gpu": "true"},
        {"gpu-type": "H200"},
        {"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"},
        {"gpu-pool": "h200-or-a100"},
        {"node.kubernetes.io/instance-type": "a2-highgpu-1g"},
        {"team": "a100"},
        {"nvidia.com/mig.config": "all-1g.10gb"},
    ],
)
def test_a_label_about_something_else_or_of_the_same_model_is_no_conflict(labels: dict[str, str]):
    assert conflicts({**H200, **labels}) == []


@pytest.mark.parametrize(
    ("product", "named"), [("NVIDIA-A10G", "a10"), ("NVIDIA-GB200", "b200"), ("NVIDIA-L40S", "l40s")]
)
def test_what_people_call_the_same_model_is_no_conflict(product: str, named: str):
    assert conflicts({"nvidia.com/gpu.product": product, "accelerator": named}) == []


def test_nothing_is_compared_without_a_discovered_product():
    assert conflicts({"gpu-type": "a100"}) == []


def test_gpus_that_are_promised_by_a_label_are_not_on_the_bus():
    labels = {"nvidia.com/gpu.present": "true", PCI.format("0300_1a03"): "true"}

    assert conflicts(labels, offers_nvidia=False) == ["nvidia.com/gpu.present"]
    assert conflicts(labels, offers_nvidia=True) == []
    assert conflicts({**labels, PCI.format("0302_10de"): "true"}, offers_nvidia=False) == []
    assert conflicts({"nvidia.com/gpu.present": "true"}, offers_nvidia=False) == []  # no NFD: nobody knows


def test_a_node_keeps_few_of_them():
    many = {f"gpu-type-{at}": "t4" for at in range(100)}

    assert len(conflicts({**H200, **many})) == MOST
