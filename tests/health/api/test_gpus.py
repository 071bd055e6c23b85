"""The table of GPUs in REST."""

import pytest

from tests import make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
PLACE = "/api/v1/gpu-health"


def test_it_has_pages_and_an_order(bob):
    make.a_node(make.a_cluster("east"), "gpu-1", gpus=3)

    first = bob.get(f"{PLACE}?limit=2&ordering=-node").json()
    second = bob.get(first["next"]).json()

    assert (first["count"], [row["index"] for row in first["results"]], first["previous"]) == (3, [0, 1], None)
    assert ([row["index"] for row in second["results"]], second["next"]) == ([2], None)
    assert first["results"][0]["metrics"]["temperature_celsius"]["state"] == "no-source"
    assert first["results"][0]["holders"] == []


@pytest.mark.parametrize(
    "query",
    ["colour=red", "limit=0", "limit=1001", "offset=-1", "ordering=secret", "severity=bad", "state=x", "faults=yes",
     f"q={'x' * 254}"],
)  # fmt: skip
def test_what_it_does_not_know_is_refused(bob, query):
    assert bob.get(f"{PLACE}?{query}").status_code == 400


def test_a_stranger_sees_none_and_nobody_is_asked_to_sign_in(eve, client):
    make.a_node(make.a_cluster("east"), gpus=3)

    assert eve.get(PLACE).json()["results"] == []
    assert client.get(PLACE).status_code == 401
