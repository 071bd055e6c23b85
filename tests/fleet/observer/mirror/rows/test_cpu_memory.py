"""What a pod requests as a whole. Expected sums: as the documentation's page on effective requests reckons them."""

import msgspec
import pytest

from fleet.observer.mirror.rows.cpu_memory import requested
from fleet.observer.mirror.rows.gpu_requests import extended_resources
from kube.quantity import MOST, rounded_up
from kube.structs import PodSeen
from tests.fleet.documents import a_pod_seen, pod_document

MI = 2**20


def asks(cpu: str = "", memory: str = "", *, sidecar: bool = False, **limits: str) -> dict:
    given = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    resources = {"requests": given} | ({"limits": limits} if limits else {})
    return {"name": "c", "resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


def of(containers: list[dict], inits: list[dict] | None = None, **spec: object) -> tuple[int, int]:
    document = pod_document(containers=containers, init_containers=inits or [])
    document["spec"] |= spec
    amounts = requested(msgspec.convert(document, PodSeen, strict=False))
    return amounts["cpu_m"], amounts["memory_bytes"]


def test_containers_are_added_up():
    assert of([asks("100m", "64Mi"), asks("1.5", "192Mi")]) == (1600, 256 * MI)


def test_an_init_container_counts_where_it_needs_more_of_a_resource_by_itself():
    assert of([asks("100m", "64Mi")], [asks("2", "32Mi"), asks("1", "16Mi")]) == (2000, 64 * MI)


def test_a_sidecar_runs_beside_the_containers_and_the_init_containers_after_it():
    sidecar, first, last = asks("500m", sidecar=True), asks("2"), asks("1800m")

    assert of([asks("1")], [first, sidecar, last]) == (2300, 0)
    assert of([asks("1900m")], [first, sidecar, last]) == (2400, 0)


def test_a_sidecar_is_beside_an_init_container_that_asks_for_a_gpu():
    def gpu(**more: str) -> dict:
        return {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}, **more}

    pod = a_pod_seen(containers=[{"name": "main"}], init_containers=[gpu(restartPolicy="Always"), gpu()])

    assert extended_resources(pod) == {"nvidia.com/gpu": 2}


def test_what_is_requested_for_the_whole_pod_counts_instead_of_its_containers_sum():
    whole = {"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}}

    assert of([asks("1", "64Mi"), asks("1", "64Mi")], resources=whole) == (4000, 128 * MI)


def test_the_overhead_of_a_runtime_class_comes_on_top():
    assert of([asks("1", "64Mi")], overhead={"cpu": "250m", "memory": "120Mi"}) == (1250, 184 * MI)


def test_a_limit_is_the_request_where_there_is_none():
    assert of([asks("1", memory="")], None) == (1000, 0)
    assert of([{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Mi"}}}]) == (2000, MI)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_done_requests_nothing(phase):
    done = a_pod_seen(containers=[asks("1", "64Mi")], phase=phase)

    assert requested(done) == {"cpu_m": 0, "memory_bytes": 0}


@pytest.mark.parametrize(
    ("quantity", "scale", "number"),
    [
        ("100m", 1000, 100),
        ("1.1", 1000, 1100),
        ("0.0001", 1000, 1),
        ("500n", 1000, 1),
        ("1e3", 1, 1000),
        ("12E", 1, MOST),
        ("1Ei", 1, 2**60),
        (".5Ki", 1, 512),
        (2, 1000, 2000),
        ("-3", 1000, 0),
        ("1e-999999999999", 1, 1),
        ("many", 1000, None),
        ("1" * 65, 1, None),
    ],
)
def test_amounts_are_rounded_up_as_the_scheduler_does(quantity, scale, number):
    assert rounded_up(quantity, scale) == number
