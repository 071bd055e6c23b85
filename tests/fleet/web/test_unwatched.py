"""The banner over every page, of clusters that no worker watches."""

from datetime import timedelta

import pytest

from fleet.freshness.observation_state import all_observations
from fleet.models import Cluster, Observer, ObservingWorker
from fleet.models.observer import GRACE
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now"), pytest.mark.sqlite]
LATE = NOON - timedelta(minutes=2)
PLACES = ("/", "/findings", "/pools", "/segments", "/plans", "/account", "/parts/unwatched")


def a_watched(name: str, **given):
    cluster = make.a_cluster(name)
    Observer.objects.create(cluster=cluster, epoch=3, **{"lease_until": NOON + timedelta(seconds=20)} | given)
    return cluster


@pytest.fixture
def viewer(db):
    return visiting(make.a_user(role="viewer"))


def test_every_page_names_it_with_since_when_and_what_helps(viewer):
    cluster = a_watched("north", lease_until=LATE)
    node = make.a_node(cluster, "gpu-001")
    pool = make.a_pool(cluster, "training")
    a_watched("south")
    ObservingWorker.report("one:7", threads=1, now=NOON)

    for path in (*PLACES, f"/clusters/{cluster.pk}", f"/nodes/{node.pk}", f"/pools/{pool.pk}"):
        text = page(viewer, path).text
        assert "No worker watches north since 11:58:00" in text, path
        assert "pages show its state at that time. 1 thread for 2 clusters. Increase -c of" in text, path


def test_it_goes_by_itself_as_soon_as_somebody_watches(viewer):
    cluster = a_watched("north", lease_until=LATE)
    assert "No worker watches" in page(viewer, "/parts/unwatched").text

    Observer.objects.filter(cluster=cluster).update(lease_until=NOON + timedelta(seconds=30))

    assert page(viewer, "/parts/unwatched").text == ""
    assert "No worker watches" not in page(viewer, "/").text


def test_it_is_for_those_who_may_see_such_a_cluster():
    north, south = a_watched("north", lease_until=LATE), a_watched("south")
    of_south = make.a_user("sam", role="viewer", on=south)
    of_north = make.a_user("nora", role="viewer", on=north)

    assert "No worker watches" not in page(visiting(of_south), "/").text
    assert "No worker watches" not in page(visiting(make.a_user("new")), "/").text
    assert "No worker watches north" in page(visiting(of_north), "/").text


def test_of_many_it_names_some_and_counts_the_rest(viewer):
    for number in range(5):
        a_watched(f"c{number}", lease_until=LATE)

    text = page(viewer, "/parts/unwatched").text

    assert "c0 since 11:58:00" in text
    assert "c2 since 11:58:00" in text
    assert "and 2 more : pages show their" in text


@pytest.mark.parametrize("lease", [-GRACE * 2, -GRACE, timedelta(0), GRACE])
@pytest.mark.parametrize("look", [None, -GRACE * 2, -GRACE, GRACE])
def test_the_database_picks_what_the_sight_of_one_calls_unwatched(lease, look):
    cluster = a_watched("north", lease_until=NOON + lease, next_look_at=None if look is None else NOON + look)
    fresh = make.a_cluster("just-added")
    Cluster.objects.filter(pk=fresh.pk).update(added_at=NOON)
    make.a_cluster("never-taken")

    said = {pk for pk, observation in all_observations(now=NOON).items() if observation.unwatched_since}

    assert {each.pk for each in Cluster.objects.unwatched(now=NOON)} == said
    assert (cluster.pk in said) == (lease == -GRACE * 2 and look in (None, -GRACE * 2))


def test_it_costs_a_page_one_query(viewer, queries_of, settings):
    a_watched("north")
    with_it = queries_of(viewer, "/account")

    (engine,) = settings.TEMPLATES
    options = engine["OPTIONS"]
    rest = [each for each in options["context_processors"] if "unwatched" not in each]
    settings.TEMPLATES = [engine | {"OPTIONS": options | {"context_processors": rest}}]

    assert with_it - queries_of(viewer, "/account") == 1
