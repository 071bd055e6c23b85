from health.telemetry.frame import GpuDevice
from health.telemetry.identity import Whereabouts, take_inventory

WHERE = Whereabouts(frozenset({"gpu-1", "gpu-2"}), {"exporter-1": "gpu-1", "exporter-2": "gpu-2"})
A, B = ("GPU-a", ""), ("GPU-b", "")


def taken(*rows):
    return take_inventory(rows, WHERE)


def test_knows_a_device_by_either_spelling_of_the_host():
    inventory = taken(
        (A, {"Hostname": "gpu-1", "gpu": "3", "modelName": "NVIDIA H200"}),
        (B, {"hostname": "gpu-2", "gpu": "0"}),
    )

    assert inventory.devices == (GpuDevice("gpu-1", 3, "GPU-a", product="NVIDIA H200"), GpuDevice("gpu-2", 0, "GPU-b"))
    assert inventory.notes == ()


def test_believes_kubernetes_where_an_exporter_runs():
    inventory = taken((A, {"Hostname": "localhost", "pod": "exporter-2"}))

    assert inventory.devices == (GpuDevice("gpu-2", None, "GPU-a"),)
    assert inventory.notes == ()


def test_names_an_exporter_that_lies_about_its_node():
    inventory = taken((A, {"Hostname": "gpu-2", "pod": "exporter-1"}))

    assert inventory.devices[0].node_name == "gpu-1"
    assert "the exporter on gpu-1 calls itself gpu-2" in inventory.notes[0]


def test_takes_a_device_that_two_nodes_claim_for_neithers():
    inventory = taken((A, {"Hostname": "gpu-1"}), (A, {"Hostname": "gpu-2"}), (B, {"Hostname": "gpu-2"}))

    assert [device.uuid for device in inventory.devices] == ["GPU-b"]
    assert "GPU-a by gpu-1 and gpu-2" in inventory.notes[0]


def test_leaves_out_series_of_nodes_that_nobody_knows():
    inventory = taken((A, {"Hostname": "elsewhere"}), (B, {}))

    assert inventory.devices == ()
    assert "elsewhere, no name" in inventory.notes[0]


def test_counts_what_is_too_much_for_a_sentence():
    inventory = taken(*(((f"GPU-{n}", ""), {"Hostname": f"other-{n}"}) for n in range(9)))

    assert "and 4 more" in inventory.notes[0]
