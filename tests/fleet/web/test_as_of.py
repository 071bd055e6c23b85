"""What was counted or said a while ago is dated and never green, on every page that shows it."""

from datetime import timedelta

import pytest

from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def a_pool_seen(ago):
    cluster = make.a_cluster(seen_at=NOON - ago)
    pool = make.a_pool(cluster)
    make.a_node(cluster, pool=pool)
    return pool


@pytest.mark.parametrize("address", ["/", "/pools", "/clusters/{}"])
def test_a_pool_of_a_cluster_that_is_not_seen_says_when_it_was_counted(viewer, address):
    old, new = a_pool_seen(timedelta(minutes=3)), a_pool_seen(timedelta(seconds=3))

    assert "as of 11:57:00" in page(viewer, address.format(old.cluster_id)).text
    assert f'<tr id="pool-{old.pk}" class="is-stale">' in viewer.get("/parts/fleet/overview").content.decode()
    assert "as of 11:57:00" not in page(viewer, f"/clusters/{new.cluster_id}").text


def test_the_summary_says_when_it_was_counted(viewer):
    a_pool_seen(timedelta(seconds=3))
    assert "counted as of" not in page(viewer, "/parts/fleet/overview").text

    a_pool_seen(timedelta(minutes=3))
    assert "1 of 2 clusters not seen, counted as of 11:57:00" in page(viewer, "/parts/fleet/overview").text
    assert "sum is-stale" in viewer.get("/parts/fleet/overview").content.decode()

    a_pool_seen(timedelta(minutes=5))
    assert "2 of 3 clusters not seen, counted as of 11:55:00 or later" in page(viewer, "/parts/fleet/overview").text
