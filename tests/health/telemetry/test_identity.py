from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.telemetry.identity import Whereabouts, device_key, take_inventory
from health.telemetry.snapshot import GpuDevice

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
    inventory = taken((A, {"Hostname": "elsewhere"}), (B, {"kubernetes_node": "far-away"}))

    assert inventory.devices == ()
    assert "Left out: series of nodes that are not in this cluster (elsewhere, far-away)." in inventory.notes[0]


def test_leaves_out_series_that_nothing_says_the_node_of():
    inventory = taken((A, {}), (B, {"Hostname": "", "instance": "10.0.0.7:9400"}))

    assert inventory.devices == ()
    assert inventory.notes == ("Left out: 2 series without a node name. Let Prometheus add the label node.",)


def test_leaves_out_series_of_no_gpu():
    inventory = taken((("", ""), {"Hostname": "gpu-1", "gpu": "0"}), (("x" * 65, ""), {"Hostname": "gpu-1"}))

    assert (inventory.devices, inventory.left_out) == ((), 2)
    assert inventory.notes == ("Left out: 2 series without a UUID or serial number of a GPU.",)


@pytest.mark.parametrize(
    "labels",
    [
        {"Hostname": "gpu-2"},
        {"hostname": "gpu-2"},
        {"Hostname": "exporter-2"},  # its own pod, as before dcgm-exporter #129
        {"hostname": "exporter-2", "pod": "tenant"},
        {"Hostname": "9f2b1c", "node": "gpu-2"},
        {"Hostname": "localhost", "kubernetes_node": "gpu-2"},
        {"Hostname": "exporter-long-gone", "hostname": "gpu-2"},
        {"hostname": "10.0.0.7", "exported_hostname": "gpu-2"},
        {"nodename": "gpu-2", "instance": "10.0.0.7:9400"},
        {"kubernetes_node_name": "gpu-2"},
        {"k8s_node_name": "gpu-2"},
        {"instance": "gpu-2"},
        {"instance": "gpu-2:9400", "Hostname": "3d1f"},
    ],
)
def test_knows_the_node_however_it_is_spelt(labels):
    inventory = taken((A, labels))

    assert inventory.devices == (GpuDevice("gpu-2", None, "GPU-a"),)
    assert inventory.notes == ()


HOSTS = Whereabouts(
    frozenset({"gpu-1.example.com", "gpu-2", "ip-10-0-0-7.eu.internal", "comparable.a", "comparable.b", "10.0.0.7"})
)


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "gpu-1"}, "gpu-1.example.com"),
        ({"hostname": "GPU-1.Example.com"}, "gpu-1.example.com"),
        ({"Hostname": "gpu-2.example.com"}, "gpu-2"),
        ({"Hostname": "GPU-2"}, "gpu-2"),
        ({"Hostname": "ip-10-0-0-7", "instance": "exporter.monitoring.svc:9400"}, "ip-10-0-0-7.eu.internal"),
        ({"Hostname": "3d1f", "instance": "gpu-2.example.com:9400"}, "gpu-2"),
        ({"Hostname": "gpu-1.elsewhere.com"}, ""),
        ({"Hostname": "comparable"}, ""),
        ({"Hostname": "comparable.a"}, "comparable.a"),
        ({"Hostname": "comparable.c"}, ""),
        ({"Hostname": "10"}, ""),
        ({"Hostname": "3d1f", "instance": "10.0.0.8:9400"}, ""),
        ({"Hostname": "localhost"}, ""),
    ],
)
def test_knows_a_host_with_its_domain_and_without_where_only_one_is_called_so(labels, node):
    inventory = take_inventory([(A, labels)], HOSTS)

    assert [device.node_name for device in inventory.devices] == ([node] if node else [])
    assert len(inventory.notes) == (not node)


SERVED = Whereabouts(
    frozenset({"gpu-1", "gpu-2"}), {"nvidia-dcgm-exporter-x7k2p": "gpu-1", "nvidia-dcgm-exporter-9zq4d": "gpu-2"}
)


@pytest.mark.parametrize(
    "instance", ["nvidia-dcgm-exporter.gpu-operator:9400", "nvidia-dcgm-exporter.conformance.svc.cluster.local:9400"]
)
def test_says_that_exporters_are_scraped_through_a_service(instance):
    rows = [(key, {"Hostname": "gpu-1", "instance": instance}) for key in (A, B)]

    inventory = take_inventory(rows, SERVED)

    assert {device.node_name for device in inventory.devices} == {"gpu-1"}
    (note,) = inventory.notes
    assert note == (
        f"Prometheus scrapes exporters through a Service, which returns another node each time: {instance}. Let "
        "Prometheus scrape the pods."
    )


@pytest.mark.parametrize(
    ("instance", "where"),
    [
        ("10.0.0.7:9400", SERVED),
        ("gpu-1:9400", SERVED),
        ("nvidia-dcgm-exporter-x7k2p:9400", SERVED),
        ("nvidia-dcgm-exporter", SERVED),
        ("nvidia-dcgm-exporter.gpu-operator:9400", replace(SERVED, exporters={"nvidia-dcgm-exporter-x7k2p": "gpu-1"})),
    ],
)
def test_a_target_that_is_one_exporter_is_no_service(instance, where):
    assert take_inventory([(A, {"Hostname": "gpu-1", "instance": instance})], where).notes == ()


def test_believes_prometheus_before_an_exporter():
    inventory = taken((A, {"Hostname": "gpu-1", "kubernetes_node": "gpu-2"}))

    assert inventory.devices[0].node_name == "gpu-2"
    assert "the exporter on gpu-2 calls itself gpu-1" in inventory.notes[0]


def test_believes_prometheus_before_the_pod_that_an_exporter_claims_to_be():
    inventory = taken((A, {"Hostname": "exporter-2", "node": "gpu-1", "pod": "of-nobody"}))

    assert inventory.devices[0].node_name == "gpu-1"
    assert "the exporter on gpu-1 calls itself gpu-2" in inventory.notes[0]


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({"serial_number": "s1", "gpu_partition_id": "0", "gpu_compute_partition_type": "spx"}, ("s1", "")),
        ({"serial_number": "s1", "gpu_partition_id": "0", "gpu_compute_partition_type": "SPX"}, ("s1", "")),
        ({"serial_number": "s1", "gpu_partition_id": "0", "gpu_compute_partition_type": "none"}, ("s1", "")),
        ({"serial_number": "s1", "gpu_partition_id": "NA", "gpu_compute_partition_type": "spx"}, ("s1", "")),
        ({"serial_number": "s1", "gpu_partition_id": "NA"}, ("s1", "")),
        ({"serial_number": "s1", "gpu_partition_id": "3", "gpu_compute_partition_type": "cpx"}, ("s1", "3")),
        ({"serial_number": "s1", "gpu_partition_id": "0", "gpu_compute_partition_type": "DPX"}, ("s1", "0")),
        ({"serial_number": "", "gpu_uuid": "17ff74b5", "gpu_partition_id": "0"}, ("17ff74b5", "0")),
        ({"serial_number": "N/A", "gpu_uuid": "88ff740f", "gpu_partition_id": "NA"}, ("88ff740f", "")),
        ({"serial_number": "0", "gpu_uuid": "88ff740f", "gpu_partition_id": "4294967295"}, ("88ff740f", "")),
        ({"serial_number": "", "gpu_uuid": "00000000-0000-0000-0000-000000000000"}, ("", "")),
        ({"UUID": "GPU-00000000-0000-0000-0000-000000000000", "gpu": "0"}, ("", "")),
        ({"UUID": "GPU-a", "GPU_I_ID": "7", "gpu_uuid": "other"}, ("GPU-a", "7")),
        ({"UUID": "01P0", "id": "3"}, ("01P0", "")),
    ],
)
def test_knows_a_whole_gpu_from_a_part_of_one(labels, key):
    assert device_key(labels) == key


@given(st.sampled_from(["0", "N/A", "na", "None", "", "unknown", "00000000-0000-0000-0000-000000000000"]))
def test_what_every_gpu_may_have_names_none(name):
    inventory = taken(*((device_key({"serial_number": name, "gpu_uuid": name}), {"hostname": h}) for h in WHERE.nodes))

    assert (inventory.devices, len(inventory.notes)) == ((), 1)
    assert "without a UUID or serial number of a GPU" in inventory.notes[0]


@given(st.uuids().filter(lambda uuid: uuid.int), st.integers(1, 10**13))
def test_a_uuid_and_a_serial_number_name_one(uuid, serial):
    assert device_key({"UUID": f"GPU-{uuid}"})[0] == f"GPU-{uuid}"
    assert device_key({"serial_number": str(serial)})[0] == str(serial)


def test_a_serial_number_that_is_none_is_not_told():
    inventory = taken((A, {"Hostname": "gpu-1", "DCGM_FI_DEV_SERIAL": "N/A"}))

    assert inventory.devices[0].serial == ""


def test_calls_a_gpu_by_what_its_exporter_has():
    amd = {"card_model": "102-G30211-0C", "card_series": "AMD Instinct MI300X OAM", "gpu_id": "2", "hostname": "gpu-1"}

    inventory = taken((A, amd), (B, {"id": "5", "node": "gpu-1"}))

    assert inventory.devices == (
        GpuDevice("gpu-1", 2, "GPU-a", product="AMD Instinct MI300X OAM"),
        GpuDevice("gpu-1", 5, "GPU-b"),
    )


def test_counts_what_is_too_much_for_a_sentence():
    inventory = taken(*(((f"GPU-{n}", ""), {"Hostname": f"other-{n}"}) for n in range(9)))

    assert "and 4 more" in inventory.notes[0]
