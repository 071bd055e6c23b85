"""Quarterdeck reads a real Prometheus that scrapes exporters: what its GPUs have is what was scraped, and when."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import time_machine
from django.utils import timezone

from demo.prometheus import Scraped, Scraping, way_in
from demo.visitor import wait_until
from fleet.models import Cluster, Node
from health.inbox.telemetry_sources import Trial, put_source, try_source
from health.models import TelemetrySource
from health.sources import source_round
from tests import make
from tests.callers import calling
from tests.flows.prometheus.conftest import BCRYPTED, PASSWORD, Served
from tests.health.telemetry.prometheus.an_authority import Authority
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.prometheus, pytest.mark.django_db, pytest.mark.usefixtures("redis", "sent")]
EVERY_S = 1
READ = {
    "temperature_celsius": ("DCGM_FI_DEV_GPU_TEMP", 1),
    "memory_used_mib": ("DCGM_FI_DEV_FB_USED", 1),
    "power_watts": ("DCGM_FI_DEV_POWER_USAGE", 1),
    "gpu_utilisation_ratio": ("DCGM_FI_DEV_GPU_UTIL", 0.01),
    "energy_joules": ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 0.001),
    "xid": ("DCGM_FI_DEV_XID_ERRORS", 1),
}
HALF_A_SCRAPE = timedelta(seconds=EVERY_S / 2)  # two samples of a series are twice as far from each other


@pytest.fixture(autouse=True)
def _on_this_machine(settings: Any) -> None:
    settings.TELEMETRY_LOOPBACK = True


def source(simulated: dict[str, str]) -> list[dict[str, str]]:
    """Of each exporter's pod what Kubernetes says of it."""
    kubeconfig = Path(simulated["kubeconfig"])
    authority = way_in(kubeconfig.parent, Scraped("it", kubeconfig)).authority
    trusted = ssl.create_default_context(cafile=authority)
    answer = httpx.get(f"{simulated['url']}/simulator/targets", timeout=PATIENCE_S, verify=trusted)
    found = answer.raise_for_status().json()
    return [{key.removeprefix("__meta_kubernetes_"): text for key, text in one["labels"].items()} for one in found]


def mirrored(name: str, simulated: dict[str, str]) -> Cluster:
    """A cluster with the nodes and exporters of a simulated one."""
    cluster: Cluster = make.a_cluster(name)
    for told in source(simulated):
        node = make.a_node(cluster, told["pod_node_name"])
        make.a_pod(node, told["pod_name"], namespace=told["namespace"], gpus=0, operand="dcgm-exporter")
    return cluster


def add(cluster: Cluster, server: Served, **given: str) -> Trial:
    """Tries the server, and makes it the cluster's source if it answers."""
    trial = try_source(cluster, url=server.url, **given)
    if not trial.trouble:
        put_source(cluster, actor="ada", now=timezone.now(), url=server.url, is_on=True, **given)
    return trial


def ask(cluster: Cluster, *, at: datetime | None = None) -> TelemetrySource:
    """As a worker does, whether or not it is time."""
    TelemetrySource.objects.filter(cluster=cluster).update(next_look_at=cluster.added_at)
    source = source_round.ask(cluster.pk, clock=lambda: at or datetime.now(UTC))
    assert source is not None
    return TelemetrySource.objects.get(pk=source.pk)


def devices_of(node: Node, *, at: datetime | None = None) -> list[dict[str, Any]]:
    """As REST has them."""
    viewer = calling(make.a_user(role="viewer"))
    with time_machine.travel(at or datetime.now(UTC), tick=False):
        found: list[dict[str, Any]] = viewer.get(f"/api/v1/nodes/{node.pk}/telemetry").json()["devices"]
    return found


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def scraped(server: Served, name: str, labels: str) -> list[tuple[datetime, float]]:
    """Each sample of the one device's series that was scraped of late."""
    rows = server.ask(f"{name}{{{labels}}}[5m]")
    return [(datetime.fromtimestamp(at, UTC), float(value)) for row in rows for at, value in row["values"]]


def is_as_scraped(server: Served, device: dict[str, Any], key: str) -> bool:
    (name, factor), metric = READ[key], device["metrics"][key]
    return metric["state"] == "fresh" and any(
        abs(at - instant(metric["sampled_at"])) < HALF_A_SCRAPE and value * factor == pytest.approx(metric["value"])
        for at, value in scraped(server, name, f'UUID="{device["uuid"]}"')
    )


@pytest.mark.parametrize("honor_labels", [False, True])
def test_each_gpu_has_what_was_scraped_of_it_and_when(served: Any, east: dict[str, str], honor_labels: bool) -> None:
    server = served(Scraped("east", Path(east["kubeconfig"])), how=Scraping(EVERY_S, 1, honor_labels=honor_labels))
    server.wait_for("DCGM_FI_DEV_GPU_TEMP", 16)
    cluster = mirrored("east", east)

    said = add(cluster, server)
    source = ask(cluster)

    assert said.sentence.startswith("The source answers with 16 devices of this cluster and ")
    assert (source.state, source.message, source.notes, source.devices) == ("answering", "", [], 16)
    for node in Node.objects.filter(cluster=cluster):
        devices = devices_of(node)
        assert [device["index"] for device in devices] == list(range(8))
        on_it = {row["metric"]["UUID"] for row in server.ask(f'DCGM_FI_DEV_GPU_TEMP{{hostname="{node.name}"}}')}
        assert {device["uuid"] for device in devices} == on_it
        wrong = [(device["index"], key) for device in devices for key in READ if not is_as_scraped(server, device, key)]
        assert wrong == []


def test_of_a_shared_server_a_cluster_has_its_own_gpus_and_their_slices(
    served: Any, east: dict[str, str], west: dict[str, str]
) -> None:
    both = (Scraped("east", Path(east["kubeconfig"])), Scraped("west", Path(west["kubeconfig"])))
    server = served(*both, how=Scraping(EVERY_S, 1, names_clusters=True))
    server.wait_for('DCGM_FI_DEV_GPU_TEMP{cluster="east"}', 16)
    server.wait_for('DCGM_FI_DEV_FB_USED{cluster="west",GPU_I_ID!=""}', 32)
    cluster = mirrored("west", west)

    add(cluster, server, matchers='cluster="west"')
    source = ask(cluster)

    assert (source.state, source.notes) == ("answering", [])
    devices = [device for node in Node.objects.filter(cluster=cluster) for device in devices_of(node)]
    slices = [device for device in devices if device["gi_id"]]
    assert {device["profile"] for device in slices} == {"1g.10gb", "2g.20gb", "3g.40gb"}
    assert len(slices) == 32
    assert {device["metrics"]["gpu_utilisation_ratio"]["state"] for device in slices} == {"not-applicable"}
    for device in slices:
        (used,) = {
            value
            for at, value in scraped(
                server, "DCGM_FI_DEV_FB_USED", f'UUID="{device["uuid"]}",GPU_I_ID="{device["gi_id"]}"'
            )
            if abs(at - instant(device["metrics"]["memory_used_mib"]["sampled_at"])) < HALF_A_SCRAPE
        }
        assert device["metrics"]["memory_used_mib"]["value"] == used


def test_what_an_exporter_said_before_it_fell_silent_is_stale_since_then_and_its_neighbours_is_not(
    served: Any, east: dict[str, str]
) -> None:
    server = served(Scraped("east", Path(east["kubeconfig"])))
    server.wait_for("DCGM_FI_DEV_GPU_TEMP", 16)
    cluster = mirrored("east", east)
    add(cluster, server)
    ask(cluster)
    sick, well = Node.objects.filter(cluster=cluster).order_by("name")
    before = {each["index"]: each["metrics"]["temperature_celsius"] for each in devices_of(sick)}
    fault = {"key": "silent_exporter", "node": sick.name, "how": "refuses"}
    httpx.post(f"{east['url']}/simulator/faults", json=fault, timeout=PATIENCE_S).raise_for_status()
    try:
        server.wait_for("DCGM_FI_DEV_GPU_TEMP", 8)

        later = datetime.now(UTC) + timedelta(minutes=2)  # its Prometheus has not come that far: of it that is told
        source = ask(cluster, at=later)
        stale = [each["metrics"]["temperature_celsius"] for each in devices_of(sick, at=later)]
        fresh = [each["metrics"]["temperature_celsius"] for each in devices_of(well, at=later)]
    finally:
        httpx.delete(f"{east['url']}/simulator/faults", timeout=PATIENCE_S)

    assert (source.state, source.notes) == (
        "answering",
        ["The server's clock is 120 s behind ours. Times are shown by our clock."],
    )
    assert stale == [before[index] | {"state": "stale", "since": before[index]["sampled_at"]} for index in range(8)]
    assert {each["state"] for each in fresh} == {"fresh"}


def test_when_it_ends_what_it_said_stays_and_its_source_is_silent(served: Any, east: dict[str, str]) -> None:
    server = served(Scraped("east", Path(east["kubeconfig"])))
    server.wait_for("DCGM_FI_DEV_GPU_TEMP", 16)
    cluster = mirrored("east", east)
    add(cluster, server)
    ask(cluster)
    node = Node.objects.filter(cluster=cluster).first()
    before = [each["metrics"]["temperature_celsius"] for each in devices_of(node)]

    server.child.stop()
    source = ask(cluster)

    assert source.state == "silent"
    assert source.message.startswith("The server cannot be reached: ")
    since = source.state_since.isoformat().replace("+00:00", "Z")
    assert [each["metrics"]["temperature_celsius"] for each in devices_of(node)] == [
        each | {"state": "source-silent", "since": since} for each in before
    ]
    assert {each["metrics"]["ecc_corrected"]["state"] for each in devices_of(node)} == {"source-silent"}


def test_one_behind_a_password_and_a_certificate_of_its_own_is_read_with_both_and_with_neither_alone(
    served: Any, east: dict[str, str], tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, config, pair = Authority(tmp_path, "ours"), tmp_path / "web.yml", str(tmp_path / "server.pem")
    ours.serving()
    told = {"basic_auth_users": {"quarterdeck": BCRYPTED}, "tls_server_config": {"cert_file": pair, "key_file": pair}}
    config.write_text(json.dumps(told))
    server = served(Scraped("east", Path(east["kubeconfig"])), web_config=config)
    server.url = server.url.replace("http://", "https://")
    monkeypatch.setenv("QUARTERDECK_SOURCE_OURS", PASSWORD)
    monkeypatch.setenv("QUARTERDECK_SOURCE_OURS_CLUSTERS", "east")
    monkeypatch.setenv("QUARTERDECK_SOURCE_WRONG", "an-insider")
    monkeypatch.setenv("QUARTERDECK_SOURCE_WRONG_CLUSTERS", "east")
    settings.SECRETS_DIR = str(tmp_path)
    cluster = mirrored("east", east)
    signed_in = {"user": "quarterdeck", "secret_from": "env:QUARTERDECK_SOURCE_OURS"}
    wrong = signed_in | {"secret_from": "env:QUARTERDECK_SOURCE_WRONG"}

    assert "No CA that this host trusts signed the server's certificate" in add(cluster, server, **signed_in).trouble
    assert "user name, password or token is wrong" in add(cluster, server, ca_file=ours.ca_file, **wrong).trouble
    wait_until(
        lambda: add(cluster, server, ca_file=ours.ca_file, **signed_in).devices == 16,
        what="16 devices", timeout_s=PATIENCE_S,
    )  # fmt: skip
    source = ask(cluster)

    assert (source.state, source.message, source.devices) == ("answering", "", 16)
    assert PASSWORD not in str(TelemetrySource.objects.values())
