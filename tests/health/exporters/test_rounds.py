"""Rounds at the exporters of a real API server, with their pods behind its proxy."""

from collections.abc import Iterator
from datetime import timedelta
from threading import Event

import pytest
from django.db import DatabaseError
from django.utils import timezone

from fleet.messages import announce
from fleet.models import Bookmark, ExporterReading, ExporterRound, LostLease, Pod
from fleet.models.exporter import ASKED_EVERY
from health.announce import number_of
from health.exporters import exporter_round, requests
from health.exporters.storage import Keeper
from health.models import GpuMinuteBlock
from health.sources import minutes, snapshots
from kube.client.pod_proxy import metrics_of
from tests import make
from tests.api_server import ApiServer, an_api_server

pytestmark = [pytest.mark.rounds, pytest.mark.django_db, pytest.mark.sqlite]
EXPORTER = "app=nvidia-dcgm-exporter"
PROXY = "/proxy/metrics"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with an_api_server(tmp_path_factory.mktemp("exporters"), "--fleet", "small", "--nodes", "4") as server:
        yield server


@pytest.fixture
def told(monkeypatch) -> list[tuple[str, ...]]:
    kinds: list[tuple[str, ...]] = []
    monkeypatch.setattr(announce, "cluster_changed", lambda _id, **given: kinds.append(given["kinds"]))
    return kinds


@pytest.fixture
def cluster(api, told):
    """Its nodes, their exporters and their tenants, as the observer would write them."""
    uid = api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    row = make.a_cluster(uid=uid, kubeconfig=api.kubeconfig, context=api.context, seen_at=timezone.now())
    names = [node["metadata"]["name"] for node in items(api, "nodes")]
    nodes = {name: make.a_node(row, name) for name in names if name.startswith("gpu-")}
    for pod in items(api, "pods"):
        if pod["spec"].get("nodeName") in nodes and (is_exporter(pod) or not is_of_the_stack(pod)):
            a_row(nodes[pod["spec"]["nodeName"]], pod)
    return row


def items(api: ApiServer, plural: str) -> list[dict]:
    return api.get(f"/api/v1/{plural}")["items"]


def is_exporter(pod: dict) -> bool:
    return pod["metadata"]["labels"].get("app") == "nvidia-dcgm-exporter"


def is_of_the_stack(pod: dict) -> bool:
    return pod["metadata"]["namespace"] in ("gpu-operator", "kube-system")


def a_row(node, pod: dict) -> Pod:
    metadata, phase = pod["metadata"], pod["status"]["phase"]
    operand = {"operand": "dcgm-exporter", "gpus": 0} if is_exporter(pod) else {}
    return make.a_pod(
        node, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"], phase=phase, **operand
    )


def ask(cluster, *, later: timedelta = timedelta(0)):
    return exporter_round.ask(cluster, clock=lambda: timezone.now() + later)


def due(cluster) -> None:
    ExporterRound.objects.filter(cluster=cluster).update(next_look_at=timezone.now() - timedelta(seconds=1))


def test_each_node_has_a_reading_that_names_its_pods_by_their_uids(cluster, told):
    outcome = ask(cluster)

    readings = list(ExporterReading.objects.filter(cluster=cluster))
    pods = [pod for row in readings for device in row.devices for pod in device["pods"]]
    tenants = set(Pod.objects.filter(cluster=cluster, operand="").values_list("uid", flat=True))
    assert (outcome.state, outcome.exporters, outcome.answered) == ("asked", 4, 4)
    assert {len(row.devices) for row in readings} == {8}
    assert pods
    assert {pod["uid"] for pod in pods} <= tenants
    assert told == [("exporters",)]


def test_a_round_is_due_once_in_half_a_minute_and_nothing_new_is_not_told(cluster, told):
    assert ask(cluster)
    assert ask(cluster) is None

    assert ask(cluster, later=ASKED_EVERY + timedelta(seconds=1))
    assert told == [("exporters",)]


@pytest.mark.parametrize("has_prometheus", [False, True])
def test_newer_telemetry_is_told_once_a_round_where_no_prometheus_is_the_source(
    cluster, redis, monkeypatch, has_prometheus
):
    messages: list[tuple[tuple[str, ...], dict]] = []
    monkeypatch.setattr(announce, "send", lambda groups, message: messages.append((tuple(groups), message)))
    if has_prometheus:
        make.a_source(cluster)

    ask(cluster)

    topic, read_at = f"telemetry-{cluster.pk}", ExporterRound.objects.get(cluster=cluster).read_at
    message = {"type": "topic.changed", "topic": topic, "keys": [topic], "seq": number_of(read_at)}
    assert messages == ([] if has_prometheus else [((topic, "telemetry"), message)])


def test_a_lease_that_is_lost_writes_nothing(cluster, monkeypatch):
    take = ExporterRound.take

    def taken_twice(cluster_id, *, now):
        epoch = take(cluster_id, now=now)
        ExporterRound.objects.update(epoch=epoch + 1)
        return epoch

    monkeypatch.setattr(ExporterRound, "take", taken_twice)

    assert ask(cluster) is None
    assert not ExporterReading.objects.exists()


def test_a_lease_that_is_lost_after_the_last_reading_writes_no_frame(cluster, monkeypatch, redis):
    keep = Keeper.keep

    def lost_after(keeper, answers, *, now):
        keep(keeper, answers, now=now)
        ExporterRound.objects.update(epoch=keeper.epoch + 1)

    monkeypatch.setattr(Keeper, "keep", lost_after)

    assert ask(cluster) is None
    assert ExporterReading.objects.exists()
    assert snapshots.newest(cluster.pk) is None


@pytest.mark.parametrize("has_prometheus", [False, True])
def test_a_minute_of_each_node_is_kept_where_no_prometheus_is_the_source(cluster, redis, has_prometheus):
    if has_prometheus:
        make.a_source(cluster)

    ask(cluster)

    blocks = GpuMinuteBlock.objects.filter(cluster=cluster)
    assert blocks.count() == (0 if has_prometheus else 4)


def test_a_lease_that_is_lost_after_the_frame_keeps_no_minute(cluster, monkeypatch, redis):
    keep = snapshots.store

    def lost_after(cluster_id, taken):
        keep(cluster_id, taken)
        ExporterRound.objects.update(epoch=99)

    monkeypatch.setattr(snapshots, "store", lost_after)

    assert ask(cluster) is None
    assert snapshots.newest(cluster.pk) is not None
    assert not GpuMinuteBlock.objects.exists()


def test_a_minute_that_cannot_be_written_costs_nothing_else_of_the_round(cluster, monkeypatch, redis):
    def refused(*_, **__):
        raise DatabaseError("no such table")

    monkeypatch.setattr(minutes, "write_minute", refused)

    outcome = ask(cluster)

    assert outcome.state == "asked"
    assert snapshots.newest(cluster.pk) is not None


def test_a_worker_that_is_told_to_stop_hands_its_lease_on(cluster):
    stop = Event()
    stop.set()

    stopped = exporter_round.ask(cluster, clock=timezone.now, stop=stop)

    assert stopped is None
    assert ask(cluster).answered == 4


def test_a_lease_is_held_while_its_round_lasts(cluster):
    now = timezone.now()
    epoch = ExporterRound.take(cluster.pk, now=now)

    assert ExporterRound.take(cluster.pk, now=now + ASKED_EVERY) is None
    assert ExporterRound.take(cluster.pk, now=now + 3 * ASKED_EVERY) == epoch + 1
    with pytest.raises(LostLease):
        ExporterRound.keep(cluster.pk, epoch=epoch)


def test_what_is_forbidden_is_said_with_the_rule_and_not_asked_for_each_pod(api, cluster):
    api.suffer("errors", code=403, path=PROXY)
    before = len(api.requests())

    outcome = ask(cluster)

    asked = [one for one in api.requests()[before:] if PROXY in one["path"]]
    api.recover()
    assert outcome.state == "forbidden"
    assert "get on pods/proxy is missing in gpu-operator" in outcome.message
    assert len(asked) <= requests.AT_ONCE
    assert all("pods/proxy" in row.refused for row in ExporterReading.objects.all())


def test_what_was_said_outlives_a_try_that_fails(api, cluster):
    ask(cluster)
    said = {row.node_name: row.devices for row in ExporterReading.objects.all()}
    api.suffer("errors", code=503, path=PROXY)
    due(cluster)

    outcome = ask(cluster)

    api.recover()
    assert (outcome.state, outcome.answered) == ("asked", 0)
    for row in ExporterReading.objects.all():
        assert row.devices == said[row.node_name]
        assert "does not answer on port 9400" in row.refused
        assert row.refused_since


SERIES = 'DCGM_FI_DEV_GPU_TEMP{gpu="%d",UUID="GPU-%d"} 61\n'


@pytest.mark.parametrize(
    "answer",
    [
        "<html><body>502 Bad Gateway</body></html>",
        "ERROR - the host engine is away\n",
        '{"error": "no such pod"}',
        "".join(SERIES % (number, number) for number in range(2_000)),
        SERIES % (0, 0) * 20_001,
    ],
    ids=["a page", "an error", "JSON", "too many GPUs", "too many series"],
)
def test_what_one_exporter_answers_wrongly_costs_its_node_and_is_one_sentence(cluster, monkeypatch, answer):
    bad = Pod.objects.filter(cluster=cluster, operand="dcgm-exporter").order_by("node_name").first()
    ask(cluster)
    said = ExporterReading.objects.get(node_name=bad.node_name).devices

    def metrics(connection, namespace, pod, port):
        return answer if pod == bad.name else metrics_of(connection, namespace, pod, port)

    monkeypatch.setattr(requests, "metrics_of", metrics)
    due(cluster)
    outcome = ask(cluster)

    (refused,) = ExporterReading.objects.exclude(refused="")
    assert (refused.node_name, refused.devices) == (bad.node_name, said)
    assert "is invalid" in refused.refused
    assert (outcome.state, outcome.exporters - outcome.answered) == ("asked", 1)


def test_an_exporter_that_answers_nothing_leaves_what_its_gpus_said(cluster, redis, monkeypatch):
    """It runs, and its GPUs are not there for it: they are silent, and not gone."""
    snapshots.forget(cluster.pk)
    ask(cluster)
    before = snapshots.newest(cluster.pk)
    monkeypatch.setattr(requests, "metrics_of", lambda *_: "")
    due(cluster)

    outcome = ask(cluster, later=timedelta(minutes=1))

    after = snapshots.newest(cluster.pk)
    assert outcome.answered == outcome.exporters
    assert after.snapshot.devices == before.snapshot.devices
    times = after.snapshot.columns["temperature_celsius"].times
    assert times == before.snapshot.columns["temperature_celsius"].times


def test_values_that_no_gpu_can_have_are_named_with_the_round(cluster, told, monkeypatch):
    def glitching(connection, namespace, pod, port):
        return metrics_of(connection, namespace, pod, port) + 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-x"} 82505\n'

    monkeypatch.setattr(requests, "metrics_of", glitching)
    first = cluster.nodes.order_by("name").first().name

    outcome = ask(cluster)

    assert outcome.message.startswith(f"Impossible values were left out: 1 value of DCGM_FI_DEV_GPU_TEMP on {first}, ")
    assert outcome.message.endswith(" and 1 more like these.")
    assert ExporterRound.objects.get().message == outcome.message
    monkeypatch.undo()
    due(cluster)
    assert ask(cluster).message == ""


def test_a_gpu_that_two_nodes_claim_and_an_exporter_that_calls_itself_another_node_are_named(
    cluster, told, monkeypatch
):
    first, second, *_ = cluster.nodes.order_by("name").values_list("name", flat=True)

    def lying(connection, namespace, pod, port):
        text = metrics_of(connection, namespace, pod, port)
        return text + f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-x",Hostname="{first}"}} 61\n'

    monkeypatch.setattr(requests, "metrics_of", lying)

    outcome = ask(cluster)

    untrue = f"the exporter on {second} calls itself {first}"
    assert f"The node where the exporter runs counts, not its node label: {untrue}" in outcome.message
    assert f"1 device is claimed by several nodes and assigned to none: GPU-x by {first} and {second}" in (
        outcome.message
    )
    assert len(outcome.message) <= 500


def test_an_exporter_that_names_the_gpus_of_another_node_costs_those_two_and_only_while_it_does(cluster, api, redis):
    liar, owner, *others = cluster.nodes.order_by("name").values_list("name", flat=True)
    api.create("/simulator/faults", {"key": "lying_exporter", "node": liar, "how": "gpus", "as_node": owner})

    outcome = ask(cluster)
    api.delete("/simulator/faults?key=lying_exporter")

    assert "are claimed by several nodes and assigned to none" in outcome.message
    assert f" by {liar} and {owner}" in outcome.message
    assert {device.node_name for device in snapshots.newest(cluster.pk).snapshot.devices} == set(others)
    due(cluster)
    assert ask(cluster).message == ""
    assert {device.node_name for device in snapshots.newest(cluster.pk).snapshot.devices} == {liar, owner, *others}


def test_series_that_name_no_gpu_are_counted_with_their_nodes(cluster, told, monkeypatch):
    """As an AMD GPU's in a VM, of which its exporter gives neither."""
    first = cluster.nodes.order_by("name").first().name
    metrics = 'gpu_gfx_activity{gpu_id="0",serial_number=""} 3\ngpu_used_vram{gpu_id="0",serial_number=""} 285\n'
    link = 'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{nvlink="3",nvswitch="nvswitch0"} 1\n'  # no GPU's
    monkeypatch.setattr(requests, "metrics_of", lambda *_: metrics + link)

    outcome = ask(cluster)

    assert outcome.answered == outcome.exporters == 4
    assert outcome.message.startswith("Left out: 8 series without a UUID or serial number of a GPU: on ")
    assert first in outcome.message


def test_an_exporter_of_which_nothing_is_read_is_named_and_no_other(cluster, told, monkeypatch):
    first = cluster.nodes.order_by("name").first().name
    its = Pod.objects.get(cluster=cluster, operand="dcgm-exporter", node_name=first)
    series = 'mi300_gpu_power_usage{gpu_id="0",serial_number="6924"} 142\n'

    def renaming(connection, namespace, pod, port):
        return series if pod == its.name else metrics_of(connection, namespace, pod, port)

    monkeypatch.setattr(requests, "metrics_of", renaming)

    outcome = ask(cluster)

    assert outcome.message == f"Only unsupported GPU series, such as mi300_gpu_power_usage, on {first}."


def test_an_exporter_that_does_not_run_is_not_asked(cluster):
    Pod.objects.filter(cluster=cluster, operand="dcgm-exporter").update(phase="Pending")

    outcome = ask(cluster)

    assert outcome.answered == 0
    assert {row.refused.rpartition(" is ")[2] for row in ExporterReading.objects.all()} == {
        "Pending, so it cannot be queried."
    }


def test_a_reading_stays_when_the_pod_of_its_exporter_goes_and_goes_with_its_node(cluster):
    ask(cluster)
    first, second = cluster.nodes.order_by("name")[:2]
    Pod.objects.filter(node=first, operand="dcgm-exporter").delete()
    second.delete()
    Pod.objects.filter(node_name=second.name).delete()
    due(cluster)

    ask(cluster)

    rows = {row.node_name: row for row in ExporterReading.objects.all()}
    assert second.name not in rows
    assert (rows[first.name].refused, len(rows[first.name].devices)) == ("No exporter pod is seen on this node.", 8)


def test_too_many_exporters_are_not_asked_at_all(api, cluster):
    ask(cluster)
    make.an_operand(cluster, "dcgm-exporter", desired=5000)
    due(cluster)
    before = len(api.requests())

    outcome = ask(cluster)

    assert (outcome.state, outcome.exporters) == ("too-many", 5000)
    assert "has 5000 exporters" in outcome.message
    assert len(api.requests()) == before
    assert not ExporterReading.objects.exists()


def test_without_exporters_nobody_is_asked(cluster):
    Pod.objects.filter(operand="dcgm-exporter").delete()

    assert ask(cluster).state == "none"


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [("uid", "another", "Another cluster answers"), ("kubeconfig", "/nowhere", "does not have this kubeconfig")],
)
def test_a_cluster_that_is_not_itself_or_not_there_is_unseen(cluster, column, value, said):
    setattr(cluster, column, value)

    outcome = ask(cluster)

    assert outcome.state == "unseen"
    assert said in outcome.message
    assert not ExporterReading.objects.exists()


@pytest.mark.parametrize("kind", ["nodes", "pods"])
def test_a_cluster_that_nobody_sees_is_not_asked(api, cluster, kind):
    marks = Bookmark.objects.filter(cluster=cluster, kind=kind)
    marks.update(last_seen_at=timezone.now() - timedelta(minutes=5))
    before = len(api.requests())

    assert ask(cluster).state == "unseen"
    assert len(api.requests()) == before


def test_while_a_cluster_is_listed_for_the_first_time_its_exporters_wait_for_seconds(cluster):
    listing = {"state": "listing", "listed_at": None, "last_seen_at": None}
    Bookmark.objects.filter(cluster=cluster, kind="pods").update(**listing)

    outcome = ask(cluster)

    assert (outcome.state, "not seen" in outcome.message) == ("waiting", False)
    assert ExporterRound.objects.get().next_look_at - timezone.now() < timedelta(seconds=11)


def test_who_was_asked_the_longest_ago_comes_first(cluster):
    names = sorted(cluster.nodes.values_list("name", flat=True))
    for ago, name in enumerate(names[:3]):
        tried_at = timezone.now() - timedelta(minutes=ago)
        ExporterReading.objects.create(cluster=cluster, node_name=name, tried_at=tried_at)

    asked = [pod.node_name for pod in exporter_round._pods(cluster)]

    assert asked == [names[3], names[2], names[1], names[0]]
