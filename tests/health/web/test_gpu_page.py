"""The page of one GPU, in page and REST: what is its own, what is its node's, and what nothing tells."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Bookmark, GoneNode, PodPlacement
from health.models import GpuHour
from health.sources import snapshots
from health.sources.hours import provide_partition
from health.telemetry.exposition import read_node
from health.telemetry.identity import device_of
from health.telemetry.snapshot import GpuDevice
from tests import make
from tests.callers import calling
from tests.health.exporters.reporting import hear_exporters
from tests.health.inbox.test_comparable_nodes import told
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
PARTS = ("", "/findings", "/telemetry", "/hours", "/placements", "/timeline", "/comparable")
READS = ("", "/hours", "/placements", "/timeline", "/comparable", "/telemetry/history")


@pytest.fixture
def cluster(redis):
    row = make.a_cluster("prod")
    snapshots.forget(row.pk)
    return row


@pytest.fixture
def node(cluster):
    row = make.a_node(cluster, "gpu-1", pool=make.a_pool(cluster, "h200"), gpus=4)
    for gpu in row.gpus.all():
        gpu.uuid = f"GPU-{gpu.index}"
        gpu.save()
    return row


@pytest.fixture
def ada():
    return make.a_user("ada", role="viewer")


def placed(node, name: str, *, hours: int, **given) -> PodPlacement:
    row = {
        "node_uid": node.uid, "node_name": node.name, "pod_uid": f"uid-of-{name}", "namespace": "ml", "name": name,
        "resources": {"nvidia.com/gpu": 1}, "since": NOON - timedelta(hours=hours),
        "until": NOON - timedelta(hours=hours - 1),
    }  # fmt: skip
    return PodPlacement.objects.create(cluster_id=node.cluster_id, **row | given)


def an_hour(node, index: int, *, ago: int = 2, **given) -> None:
    hour = NOON - timedelta(hours=ago)
    provide_partition(hour)
    row = {"uuid": f"GPU-{index}", "index": index, "node_name": node.name, "seen_s": 3600.0, "busy_s": 1800.0}
    GpuHour.objects.create(cluster=node.cluster, hour=hour, **row | {"temperature_max": 70.0 + index} | given)


def rest(user, node, what: str = "", index: int = 3):
    return calling(user).get(f"/api/v1/nodes/{node.pk}/gpus/{index}{what}")


def test_says_which_it_is_and_where(node, ada):
    shown = page(visiting(ada), f"/nodes/{node.pk}/gpus/3")

    for words in ("GPU 3 of gpu-1", "GPU-3", "NVIDIA-H200", "143771 MiB", "570.172.08", "h200", "prod"):
        assert words in shown.text, words
    assert f"/nodes/{node.pk}" in shown.links


def test_who_holds_it_and_that_nothing_tells_it_are_two_things(node, ada):
    make.a_pod(node, "train", gpus=1, devices={"nvidia.com/gpu": ["GPU-3"]})

    assert "team-a/train named by the kubelet" in page(visiting(ada), f"/nodes/{node.pk}/gpus/3").text
    assert "Pods with this GPU now Nobody." in page(visiting(ada), f"/nodes/{node.pk}/gpus/2").text
    make.a_pod(node, "web", gpus=1)
    assert (
        "Perhaps team-a/web . No source names the GPUs that it has."
        in page(visiting(ada), f"/nodes/{node.pk}/gpus/2").text
    )
    Bookmark.objects.all().delete()
    assert "the pods of this cluster were never read" in page(visiting(ada), f"/nodes/{node.pk}/gpus/2").text
    assert rest(ada, node, index=2).json()["gpu"]["allocations"] is None


def test_findings_of_it_and_of_its_node_and_none_of_another_gpu(cluster, node, ada):
    own = make.a_finding(cluster, "GPU 3 of gpu-1", node=node, title="GPU 3 is hot.")
    cut = make.a_finding(cluster, "GPU 3 of gpu-1, slice 7 (1g)", node=node, title="A slice is sick.", rule="x")
    whole = make.a_finding(cluster, "node gpu-1", node=node, title="The node is not ready.", rule="y")
    make.a_finding(cluster, "GPU 1 of gpu-1", node=node, title="GPU 1 is hot.")
    make.a_finding(cluster, "GPU 3 of gpu-10", node=make.a_node(cluster, "gpu-10"), title="Elsewhere.")

    shown = page(visiting(ada), f"/nodes/{node.pk}/gpus/3")
    said = rest(ada, node).json()

    assert "GPU 3 is hot." in shown.text
    assert "A slice is sick." in shown.text
    assert "Of its node as a whole: The node is not ready." in shown.text
    assert "GPU 1 is hot." not in shown.text
    assert "Elsewhere." not in shown.text
    assert {each["id"] for each in said["findings"]} == {own.pk, cut.pk}
    assert [each["id"] for each in said["findings_of_node"]] == [whole.pk]


def test_what_is_being_confirmed_of_it_is_on_its_page_and_in_rest(cluster, node, ada):
    hot = make.a_finding(cluster, "GPU 3 of gpu-1", node=node, title="GPU 3 is hot.", opened_at=None)
    make.a_finding(cluster, "GPU 2 of gpu-1", node=node, title="GPU 2 is hot.", opened_at=None)

    said = rest(ada, node).json()

    assert "GPU 3 is hot." in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/findings").text
    assert (said["findings"], [each["id"] for each in said["confirming"]]) == ([], [hot.pk])
    assert said["confirming"][0]["confirmed_at"] == "2026-11-21T11:56:00Z"


def test_its_hours_are_its_own(cluster, node, ada):
    an_hour(node, 3, xids=2)
    an_hour(node, 1)
    make.a_finding(cluster, "GPU 1 of gpu-1", node=node, opened_at=NOON - timedelta(hours=2))

    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/hours")
    reporting = [hour for hour in rest(ada, node, "/hours").json() if hour["devices"]]

    assert "1 of 72 hours with telemetry: 1.0 GPU-hours, 0.5 under load; maximum 73 °C; at least 2 Xids." in shown.text
    assert "Findings were open in 0 hours." in shown.text
    assert [(hour["gpu_hours_seen"], hour["gpu_hours_busy"]) for hour in reporting] == [(1.0, 0.5)]
    assert "Measured for 1 h, under load 50% of that time. Highest temperature: 73 °C. At least 2 Xids." in shown.text


def test_its_timeline_has_its_xids_and_findings_and_none_of_others(cluster, node, ada):
    an_hour(node, 3, xids=2)
    an_hour(node, 1, xids=9)
    for index in (1, 3):
        make.an_event_of(make.a_finding(cluster, f"GPU {index} of gpu-1", node=node, title=f"GPU {index} is hot"))
    make.a_node_event(node, "The driver is 580.1.")
    placed(node, "mine", hours=5, boards=[3])
    placed(node, "whose", hours=4)
    placed(node, "others", hours=3, boards=[1])

    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/timeline").text
    said = [line["sentence"] for line in rest(ada, node, "/timeline").json()]

    for sentence in ("GPU 3 is hot.", "The driver is 580.1.", "At least 2 Xids from 10:00 to 11:00 UTC."):
        assert sentence in shown
        assert sentence in said
    assert "GPU 1 is hot." not in shown
    assert not [sentence for sentence in said if "9 Xids" in sentence or "others" in sentence]
    assert any("ml/whose" in sentence and "It is unknown whether" in sentence for sentence in said)
    assert [line["sentence"] for line in rest(ada, node, "/timeline?kind=gpus").json()] == [
        "At least 2 Xids from 10:00 to 11:00 UTC."
    ]


def test_its_timeline_goes_on_below_an_hour_with_xids(node, ada):
    an_hour(node, 3, xids=2)
    make.a_node_event(node, "The oldest.", at=NOON - timedelta(hours=30))

    lines, asked = [], "?most=1"
    while some := rest(ada, node, f"/timeline{asked}").json():
        lines += [line["sentence"] for line in some]
        asked = f"?most=1&before={some[-1]['at'].replace('+', '%2B')}&below={some[-1]['id']}"

    assert lines == ["At least 2 Xids from 10:00 to 11:00 UTC.", "The oldest."]


def test_bars_say_where_only_the_node_is_known(node, ada):
    placed(node, "whose", hours=4)

    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/placements")
    assert "Only the node is known" in shown.text
    assert "ml/whose" in shown.text
    assert "not known 1 nvidia.com/gpu" in shown.text

    placed(node, "mine", hours=9, boards=[3, 2], seen_until=NOON - timedelta(hours=8, minutes=30))
    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/placements")
    assert "For 1 of these pods, only the node is known" in shown.text
    assert "last seen 2026-11-21 03:30, gone 2026-11-21 04:00" in shown.text
    said = rest(ada, node, "/placements").json()
    assert [(one["pod"], one["is_known"], one["gpus"]) for one in said] == [
        ("ml/whose", False, []), ("ml/mine", True, [2, 3][::-1]),
    ]  # fmt: skip
    assert len(rest(ada, node, "/placements?since=2026-11-21T06:00:00Z").json()) == 1
    assert rest(ada, node, "/placements?most=x").status_code == 400


def test_a_pod_whose_gpus_are_told_in_part_may_have_had_any_other(node, ada):
    """As of four GPUs of which one fell off its bus: its exporter names the other three."""
    placed(node, "train", hours=5, boards=[0, 1, 2], resources={"nvidia.com/gpu": 4})
    placed(node, "small", hours=9, boards=[0, 1], resources={"nvidia.com/gpu": 2})

    said = rest(ada, node, "/placements").json()
    assert [(one["pod"], one["is_known"], one["gpus"]) for one in said] == [("ml/train", False, [0, 1, 2])]
    assert (
        "0, 1, 2 and others of 4 nvidia.com/gpu"
        in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/placements").text
    )
    lines = [line["sentence"] for line in rest(ada, node, "/timeline").json()]
    assert len(lines) == 2
    assert all("It is unknown whether this GPU was one of the other GPUs." in line for line in lines)
    assert [one["is_known"] for one in rest(ada, node, "/placements", index=1).json()] == [True, True]


def test_a_pod_that_is_there_and_whose_gpus_are_told_in_part_may_have_any_other(node, ada):
    devices = {"nvidia.com/gpu": ["GPU-0", "GPU-1"]}
    make.a_pod(node, "train", uid="uid-of-train", gpus=3, devices=devices)
    make.a_pod(node, "small", uid="uid-of-small", gpus=1, devices={"nvidia.com/gpu": ["GPU-2"]})
    placed(node, "train", hours=5, until=None, resources={"nvidia.com/gpu": 3})
    placed(node, "small", hours=4, until=None, resources={"nvidia.com/gpu": 1})

    said = rest(ada, node, "/placements").json()

    assert [(one["pod"], one["is_known"], one["gpus"]) for one in said] == [("ml/train", False, [0, 1])]


def test_a_share_of_one_board_is_no_gpu_of_another(node, ada):
    type(node).objects.update(layout="nvidia.com/gpu=whole/time-slicing*4")
    placed(node, "turns", hours=5, boards=[1], resources={"nvidia.com/gpu": 2})

    assert rest(ada, node, "/placements").json() == []


def test_who_is_there_is_known_until_its_cluster_was_last_heard(node, ada):
    placed(node, "train", hours=60, until=None)
    placed(node, "over", hours=40)
    assert [one["seen_until"] for one in rest(ada, node, "/placements").json()] == [None, None]
    Bookmark.objects.update(last_seen_at=NOON - timedelta(hours=30))

    there, over = sorted(rest(ada, node, "/placements").json(), key=lambda one: one["since"])
    assert (there["until"], there["seen_until"]) == (None, "2026-11-20T06:00:00Z")
    assert over["seen_until"] is None
    drawn = visiting(ada).get(f"/parts/nodes/{node.pk}/gpus/3/placements").content.decode()
    assert drawn.count("is-unseen") >= 1
    assert 'width="360.0"' in drawn  # 30 of 72 hours, as is what is known: 60 to 30 hours ago
    assert "it is there" not in drawn
    assert "last seen 2026-11-20 06:00" in drawn


def test_rest_says_how_old_all_of_it_is(node, ada):
    said = rest(ada, node).json()
    assert (said["freshness"], said["pods_freshness"]["state"]) == ("live", "live")

    Bookmark.objects.update(last_seen_at=NOON - timedelta(hours=30))

    said = rest(ada, node).json()
    assert (said["freshness"], said["seen_at"]) == ("stale", "2026-11-20T06:00:00Z")
    assert said["pods_freshness"]["state"] == "stale"


def test_of_the_placements_of_other_gpus_none_is_read(node, ada):
    for number in range(300):
        placed(node, f"job-{number}", hours=number + 2, boards=[number % 3])
    read = []
    read_one = PodPlacement.from_db.__func__

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PodPlacement, "from_db", classmethod(lambda *row: read.append(row) or read_one(*row)))
        rest(ada, node, "/timeline")
        rest(ada, node, "/placements")

    assert read == []


def test_telemetry_is_the_boards_and_its_slices(cluster, node, ada):
    make.a_source(cluster, exported=["temperature_celsius", "engine_active_ratio"])
    devices = [GpuDevice("gpu-1", 1, "GPU-1"), *[GpuDevice("gpu-1", 3, "GPU-3", gi, "1g.18gb") for gi in "79"]]
    snapshots.store(cluster.pk, told(*devices, temperature_celsius=[50, 64, 64], engine_active_ratio=[0.1, 0.2, 0.3]))

    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text
    said = rest(ada, node).json()["telemetry"]["devices"]

    assert "64 °C" in shown
    assert "slice 7 1g.18gb" in shown
    assert "50 °C" not in shown
    assert [(device["uuid"], device["gi_id"]) for device in said] == [("GPU-3", "7"), ("GPU-3", "9")]
    assert "never had one of this" in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/2/telemetry").text


def test_no_page_has_what_partitions_of_some_board_say(cluster, ada):
    """AMD's exporter counts partitions, and nothing tells which board of Kubernetes a serial number is."""
    node = make.a_node(cluster, "mi-1", pool=make.a_pool(cluster, "mi300x"), gpus=2)
    make.a_source(cluster, exported=["memory_used_mib"])
    cpx = {"gpu_compute_partition_type": "cpx"}
    labels = [
        cpx | {"serial_number": f"board-{board}", "gpu_id": str(2 * board + part), "gpu_partition_id": str(part)}
        for board in range(2) for part in range(2)
    ]  # fmt: skip
    snapshots.store(cluster.pk, told(*[device_of(one, "mi-1") for one in labels], memory_used_mib=[7000.0] * 4))

    for index in (0, 1):
        shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/{index}/telemetry").text
        assert (
            "The source names GPUs of this node only by serial number or UUID, so this GPU cannot be identified"
        ) in shown
        assert "6.8" not in shown
        assert rest(ada, node, index=index).json()["telemetry"]["devices"] == []
        assert (
            "The source names GPUs of this node only by serial number or UUID, so this GPU cannot be identified"
        ) in rest(ada, node, "/telemetry/history", index).json()["trouble"]
    of_node = page(visiting(ada), f"/parts/nodes/{node.pk}/telemetry")
    assert of_node.text.count("GPU board-0") == 1
    assert "slice 1" in of_node.text
    assert "never had a" not in of_node.text
    assert not [link for link in of_node.links if "/gpus/" in link]


def test_its_serial_number_is_said_where_its_exporter_says_it(cluster, node, ada):
    make.a_source(cluster, exported=["temperature_celsius"])
    said = read_node('DCGM_FI_DEV_GPU_TEMP{gpu="3",UUID="GPU-3",DCGM_FI_DEV_SERIAL="1650522003820"} 61', "gpu-1")
    snapshots.store(cluster.pk, told(*said.devices.values(), temperature_celsius=[61]))

    (device,) = rest(ada, node).json()["telemetry"]["devices"]

    assert device["serial"] == "1650522003820"
    assert "serial number 1650522003820" in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text


@pytest.mark.parametrize(
    ("ago_s", "says"), [(5, "UUID GPU-lost"), (3600, "UUID GPU-lost , as it last said")], ids=["reporting", "fallen"]
)
def test_what_only_telemetry_names_has_the_uuid_that_it_last_said(cluster, node, ada, ago_s, says):
    make.a_source(cluster, exported=["temperature_celsius"])
    node.gpus.filter(index=3).update(uuid="")
    snapshots.store(
        cluster.pk, told(GpuDevice("gpu-1", 3, "GPU-lost"), at=[NOON.timestamp() - ago_s], temperature_celsius=[61])
    )

    text = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text

    assert says in text
    assert ("as it last said" in text) == (ago_s > 90)


@pytest.mark.parametrize("uuids", [("GPU-2",), ("GPU-lost", "GPU-new")], ids=["another's", "of several"])
def test_a_uuid_that_may_be_another_boards_is_not_said(cluster, node, ada, uuids):
    make.a_source(cluster, exported=["temperature_celsius"])
    node.gpus.filter(index=3).update(uuid="")
    devices = [GpuDevice("gpu-1", 3, uuid) for uuid in uuids]
    snapshots.store(cluster.pk, told(*devices, temperature_celsius=[61] * len(devices)))

    assert "; UUID" not in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text


def test_a_reset_is_a_line_of_it_and_of_its_node_and_of_no_other_gpu(cluster, node, ada):
    def hear(at: float, **joules: float) -> None:
        lines = (
            f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="{name[1:]}",UUID="GPU-{name[1:]}"}} {value * 1000}'
            for name, value in joules.items()
        )
        said = {"gpu-1": read_node("\n".join(lines), "gpu-1")}
        hear_exporters(cluster, said, nodes=["gpu-1"], now=NOON.timestamp() + at)

    def lines(index: int | None = None) -> list[str]:
        at = "" if index is None else f"/gpus/{index}"
        said = calling(ada).get(f"/api/v1/nodes/{node.pk}{at}/timeline?kind=gpus").json()
        return [line["sentence"] for line in said]

    hear(-90, g2=500, g3=900)
    hear(-60, g2=510, g3=7)
    assert lines() == lines(3) == ["The counters of GPU 3 restarted at zero: the GPU was reset."]
    assert lines(2) == []

    hear(-30, g2=1, g3=2)
    assert (
        lines()[0]
        == lines(2)[0]
        == "The counters of all 2 GPUs restarted at zero: the driver was reloaded, or all GPUs were reset."
    )
    assert "The counters of GPU 3 restarted at zero" in page(visiting(ada), f"/nodes/{node.pk}/history").text


def test_without_a_source_it_says_so(node, ada):
    shown = page(visiting(ada), f"/nodes/{node.pk}/gpus/3").text

    assert "prod has no source of telemetry." in shown
    assert "Xids of this GPU are not known" in shown
    assert "no Prometheus" in rest(ada, node, "/telemetry/history").json()["trouble"]


def test_lists_that_name_it_lead_to_it(cluster, node, ada):
    finding = make.a_finding(cluster, "GPU 3 of gpu-1", node=node)
    there = f"/nodes/{node.pk}/gpus/3"

    assert there in page(visiting(ada), "/gpus").links
    assert there in page(visiting(ada), f"/nodes/{node.pk}").links
    assert there in page(visiting(ada), f"/findings?finding={finding.pk}").links


def test_findings_and_telemetry_are_of_one_board_whatever_its_exporter_calls_it(cluster, node, ada):
    """Kubernetes numbers GPU-0 to GPU-3 in their order; the exporter has 1 and 3 the other way round."""
    make.a_source(cluster, exported=["temperature_celsius"])
    devices = [GpuDevice("gpu-1", 1, "GPU-3"), GpuDevice("gpu-1", 3, "GPU-1")]
    snapshots.store(cluster.pk, told(*devices, temperature_celsius=[91, 40]))
    hot = make.a_finding(cluster, "GPU 1 of gpu-1", node=node, title="GPU 1 has 91 C.", gpu_uuid="GPU-3")
    lost = make.a_finding(cluster, "GPU 2 of gpu-1", node=node, title="It is away.", gpu_uuid="GPU-z", severity="note")

    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text
    assert "91 °C" in shown
    assert "call it GPU 1" in shown
    assert "GPU 1 has 91 C." in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/findings").text
    assert "GPU 1 has 91 C." not in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/1/findings").text
    assert "It is away." not in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/2/findings").text
    assert visiting(ada).get(f"/findings/{hot.pk}/gpu").url == f"/nodes/{node.pk}/gpus/3"
    assert visiting(ada).get(f"/findings/{lost.pk}/gpu").url == f"/nodes/{node.pk}"
    assert f"/findings/{hot.pk}/gpu" in page(visiting(ada), f"/findings?finding={hot.pk}").links
    linked = visiting(ada).get(f"/parts/nodes/{node.pk}/telemetry").content.decode()
    assert f'title="GPU-3"><a href="/nodes/{node.pk}/gpus/3">GPU 1</a>' in linked
    rows = calling(ada).get("/api/v1/gpu-health").json()["results"]
    assert {row["index"]: (row["finding"] or {}).get("title") for row in rows} == {
        0: None, 1: None, 2: None, 3: "GPU 1 has 91 C.",
    }  # fmt: skip
    assert rest(ada, node, "/comparable", index=0).json()["gpu"]["index"] != 3


def test_a_finding_about_one_that_nobody_lists_leads_to_what_is_known_of_it(cluster, node, ada):
    finding = make.a_finding(cluster, "GPU 7 of gpu-1", node=node, title="GPU 7 is hot.")
    make.a_source(cluster, exported=["temperature_celsius"])
    snapshots.store(cluster.pk, told(GpuDevice("gpu-1", 7, "GPU-7"), temperature_celsius=[91]))
    there = f"/nodes/{node.pk}/gpus/7"

    assert there in page(visiting(ada), f"/findings?finding={finding.pk}").links
    shown = page(visiting(ada), there)
    assert "Kubernetes lists no such GPU: of gpu-1 4 GPUs are listed" in shown.text
    assert "GPU 7 is hot." in shown.text
    assert "91 °C" in shown.text
    assert f"/nodes/{node.pk}" in shown.links
    assert "never had" not in page(visiting(ada), f"/nodes/{node.pk}/gpus/6").text
    assert "and none of this" in page(visiting(ada), f"/nodes/{node.pk}/gpus/6").text
    assert rest(ada, node, "/telemetry/history", index=7).status_code == 200
    assert {rest(ada, node, what, index=7).status_code for what in READS if what != "/telemetry/history"} == {404}
    page(visiting(ada), f"/nodes/{node.pk}/gpus/10000", status=404)
    page(visiting(ada), "/nodes/0/gpus/7", status=404)


@pytest.mark.parametrize("what", PARTS)
def test_who_may_not_see_its_node_finds_no_page(node, what):
    bob = make.a_user("bob", role="viewer", on=make.a_pool(node.cluster, "other"))

    page(visiting(bob), f"/parts/nodes/{node.pk}/gpus/3{what}", status=404)
    page(visiting(bob), f"/nodes/{node.pk}/gpus/3", status=404)


@pytest.mark.parametrize("what", READS)
def test_who_sees_its_pool_reads_it_and_nobody_else(node, what):
    amy = make.a_user("amy", role="viewer", on=node.pools.get())
    bob = make.a_user("bob", role="viewer", on=make.a_pool(node.cluster, "other"))

    assert rest(amy, node, what).status_code == 200
    assert rest(bob, node, what).status_code == 404


@pytest.mark.parametrize("what", READS)
def test_what_is_not_there_is_404_and_what_went_with_its_node_410(node, ada, what):
    assert rest(ada, node, what, index=10_000).status_code == 404
    assert rest(ada, node, what, index=10**30).status_code == 404
    gone = node.pk
    GoneNode.objects.create(node_id=gone, cluster=node.cluster, uid=node.uid, name=node.name, gone_at=NOON)
    node.delete()

    assert calling(ada).get(f"/api/v1/nodes/{gone}/gpus/3{what}").status_code == 410


@pytest.mark.parametrize("number", [2**63, 10**30])
def test_of_a_node_beyond_any_number_nothing_is_there(number, node, ada):
    for what in READS:
        assert calling(ada).get(f"/api/v1/nodes/{number}/gpus/3{what}").status_code == 404
    for what in PARTS:
        page(visiting(ada), f"/parts/nodes/{number}/gpus/3{what}", status=404)


def test_the_page_of_one_whose_node_left_is_the_nodes(node, ada):
    gone = node.pk
    GoneNode.objects.create(node_id=gone, cluster=node.cluster, uid=node.uid, name=node.name, gone_at=NOON)
    node.delete()

    assert "This node left prod" in page(visiting(ada), f"/nodes/{gone}/gpus/3").text
    assert 'id="gpu"' in visiting(ada).get(f"/parts/nodes/{gone}/gpus/3").content.decode()


def test_costs_no_more_with_more_of_everything(cluster, node, ada):
    def one_more(number: int) -> None:
        make.a_finding(cluster, "GPU 3 of gpu-1", node=node, rule=f"x{number}")
        make.a_finding(cluster, "node gpu-1", node=node, rule=f"y{number}")
        placed(node, f"job-{number}", hours=9 + number, boards=[3])
        make.a_pod(node, f"pod-{number}", gpus=1)
        make.a_node_event(node)
        an_hour(node, 3, ago=number + 1)

    one_more(0)
    with CaptureQueriesContext(connection) as few:
        page(visiting(ada), f"/nodes/{node.pk}/gpus/3")
    for number in range(1, 6):
        one_more(number)

    with CaptureQueriesContext(connection) as more:
        page(visiting(ada), f"/nodes/{node.pk}/gpus/3")

    assert len(more) == len(few)


def test_all_else_that_its_exporter_says_is_on_its_page_without_a_prometheus(node, ada):
    labels = 'gpu="3",UUID="GPU-3"'
    said = {
        "DCGM_FI_DEV_GPU_TEMP": 61, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 12, "DCGM_FI_DEV_ROW_REMAP_PENDING": 1,
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.25, "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_PROF_PCIE_TX_BYTES": 2.5e9, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x48,
    }  # fmt: skip
    text = "".join(f"{name}{{{labels}}} {value}\n" for name, value in said.items())
    health = "".join(
        f'DCGM_EXP_GPU_HEALTH_STATUS{{{labels},health_watch="{watch}"}} {value}\n'
        for watch, value in (("MEM", 10), ("SM", 0))
    )
    hear_exporters(node.cluster, {"gpu-1": read_node(text + health, "gpu-1")}, nodes=["gpu-1"], now=NOON.timestamp())
    make.an_exporter_round(node.cluster, answered=1)

    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text

    for words in (
        "ECC errors corrected 12", "Row remapping pending yes", "Row remapping failed no", "Tensor cores active 25%",
        "SM clock 1980 MHz", "PCIe sent 2.50 GB/s", "DCGM's health check warning",
        "Reasons for the present clocks its hardware lowers its clocks (hw_slowdown), it is too hot (hw_thermal)",
    ):  # fmt: skip
        assert words in shown, words
    lacking = shown.partition("Not exported")[2]
    assert "Uncorrected ECC errors" in lacking
    assert "ECC errors corrected" not in lacking


def test_a_gpu_of_which_nothing_was_ever_said_has_no_other_metrics(node, ada):
    make.a_source(node.cluster)

    assert "other metric" not in page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text


def test_what_a_slice_says_of_itself_is_not_said_of_its_board(node, ada):
    board = 'gpu="3",UUID="GPU-3"'
    text = "".join(
        f'{name}{{{board},GPU_I_ID="{number}",GPU_I_PROFILE="1g.10gb"}} {value}\n'
        for name, value in (("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.25), ("DCGM_FI_DEV_MEMORY_TEMP", 66))
        for number in (7, 8)
    )
    hear_exporters(node.cluster, {"gpu-1": read_node(text, "gpu-1")}, nodes=["gpu-1"], now=NOON.timestamp())
    make.an_exporter_round(node.cluster, answered=1)

    shown = page(visiting(ada), f"/parts/nodes/{node.pk}/gpus/3/telemetry").text

    assert "Memory temperature 66 °C" in shown
    assert "Tensor cores active" not in shown
