"""MIG shapes against demand: as numbers, and read from rows."""

from datetime import timedelta

import pytest

from capacity.free_gpus.mig_demand import WHOLE, ProfileRequest, mig_demand
from fleet.models import Bookmark
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

H100 = "NVIDIA-H100-80GB-HBM3"
DAY = timedelta(days=1)
BEGIN = NOON - 10 * DAY
SMALL, LARGE = "1g.10gb", "3g.40gb"


def a_request(profile: str, number: int = 1, *, days: float = 10, begins: float = 0) -> ProfileRequest:
    since = BEGIN + begins * DAY
    return ProfileRequest(profile, number, since, since + days * DAY)


def demand(*requests: ProfileRequest, gpus: int = 4, **offered: int):
    names = {"small": SMALL, "large": LARGE, "whole": WHOLE}
    now = {names[name]: number for name, number in offered.items()}
    return mig_demand(H100, gpus, now, requests, begin=BEGIN, end=NOON)


def by_profile(found) -> dict[str, tuple[int, int, int]]:
    return {each.profile: (each.peak, each.usual, each.gpus) for each in found.profiles}


def test_the_layout_follows_the_demand_and_the_rest_is_spare():
    found = demand(a_request(SMALL, 7), a_request(SMALL), a_request(WHOLE), small=28)

    assert by_profile(found) == {WHOLE: (1, 1, 1), SMALL: (8, 8, 2)}
    assert (found.spare, found.served) == (1, found.gpu_hours)
    assert found.served_now == pytest.approx(found.gpu_hours - 240)  # the whole GPU


def test_with_too_few_gpus_the_shapes_with_the_most_hours_win():
    found = demand(a_request(LARGE, 2), a_request(SMALL, 7, days=5), a_request(WHOLE, days=1), gpus=2)

    assert {each.profile: each.gpus for each in found.profiles} == {WHOLE: 0, SMALL: 1, LARGE: 1}
    assert found.gpu_hours - found.served == pytest.approx(24)


def test_a_short_peak_does_not_count_as_usual():
    found = demand(a_request(SMALL, 2), a_request(SMALL, 5, days=0.1, begins=3))

    assert by_profile(found)[SMALL] == (7, 2, 1)


def test_profiles_of_unknown_size_are_named_and_times_outside_are_left_out():
    found = demand(a_request("dpx_nps1"), a_request(SMALL, days=3, begins=-4))

    assert list(found.unknown) == ["dpx_nps1"]
    assert (by_profile(found)[SMALL], found.gpu_hours) == ((0, 0, 0), 0)


@pytest.mark.django_db
@pytest.mark.sqlite
@pytest.mark.usefixtures("now")
def test_the_card_and_rest_compare_the_layout_with_the_last_two_weeks():
    bob = make.a_user("bob", role="viewer")
    pool = make.a_pool(make.a_cluster("east"), "h100")
    slices = {"nvidia.com/mig-3g.40gb": 4}
    node = make.a_node(
        pool.cluster, "cut", pool=pool, gpu_product=H100, allocatable=slices, gpu_vendor="nvidia", physical_mig=2,
        physical_whole=0, physical_gpus=2, slices_expected=4, slices_allocatable=4, layout="",
    )  # fmt: skip
    resources = {"nvidia.com/mig-1g.10gb": 3}
    make.a_placement(node, "old", since=NOON - 20 * DAY, until=NOON - 15 * DAY, resources=resources)
    make.a_placement(node, "new", since=NOON - 20 * DAY, until=None, resources=resources)

    answer = calling(bob).get(f"/api/v1/pools/{pool.pk}/mig-demand").json()["mig_demand"]
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/mig-demand").text

    [found] = answer["products"]
    assert (found["gpus"], found["spare"], found["served_ratio"], found["served_now_ratio"]) == (2, 1, 1.0, 0.0)
    assert [(each["profile"], each["peak"], each["gpus"], each["gpus_now"]) for each in found["profiles"]] == [
        ("1g.10gb", 3, 1, 0), ("3g.40gb", 0, 0, 2),
    ]  # fmt: skip
    assert "would have served 100 %" in text
    Bookmark.objects.filter(kind="pods").update(listed_at=None)
    assert calling(bob).get(f"/api/v1/pools/{pool.pk}/mig-demand").json() == {"mig_demand": None}
    assert "were never read" in page(visiting(bob), f"/parts/pools/{pool.pk}/mig-demand").text


@pytest.mark.django_db
@pytest.mark.usefixtures("now")
def test_pods_that_wait_in_vain_count_from_their_creation():
    bob = make.a_user("bob", role="viewer")
    pool = make.a_pool(make.a_cluster("east"), "h100")
    labels = {"nvidia.com/gpu.product": H100}
    make.a_node(
        pool.cluster, "cut", pool=pool, gpu_product=H100, labels=labels, gpu_vendor="nvidia", physical_mig=1,
        physical_whole=0, physical_gpus=1, allocatable={"nvidia.com/mig-3g.40gb": 2}, layout="",
    )  # fmt: skip
    requests = {"gpus": 0, "resources": {"nvidia.com/mig-1g.10gb": 2}, "created_at": NOON - 2 * DAY}
    for product in (H100, "NVIDIA-A100"):
        make.a_pending_pod(
            pool.cluster, placement={"node_selector": labels | {"nvidia.com/gpu.product": product}}, **requests
        )
    make.a_pending_pod(pool.cluster, **requests)

    [found] = calling(bob).get(f"/api/v1/pools/{pool.pk}/mig-demand").json()["mig_demand"]["products"]

    peaks = {each["profile"]: each["peak"] for each in found["profiles"]}
    assert peaks["1g.10gb"] == 4
    assert found["gpu_hours"] == pytest.approx(2 * 2 * 48 / 7)
