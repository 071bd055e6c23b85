"""What the page of a cluster says of its DCGM exporters."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
NAME = "GPU allocations by exporters"


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def said(viewer, cluster) -> str:
    return page(viewer, f"/clusters/{cluster.pk}").text.partition(NAME)[2][:700]


def test_an_exporter_that_may_not_be_asked_is_told_with_the_rule_that_would_allow_it(viewer):
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, state="forbidden", message="It may not be asked: the rule is missing.")

    text = said(viewer, cluster)

    assert text.startswith(" not permitted – 0 s ago It may not be asked: the rule is missing.")
    assert "# of a Role in the namespace of the GPU operator" in text
    assert "resources: [pods/proxy] verbs: [get]" in text


def test_too_many_exporters_are_said_to_be_too_many(viewer):
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, state="too-many", exporters=5000, read_at=None, message="5000 are too many.")

    assert said(viewer, cluster).startswith(" too many – never 5000 are too many.")


def test_silent_exporters_are_counted_and_the_first_are_named(viewer):
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, exporters=8, answered=3)
    for number in range(5):
        node = make.a_node(cluster, f"gpu-{number}")
        make.a_reading(node, refused="Its pod does not answer.", refused_since=NOON + timedelta(seconds=number))

    text = said(viewer, cluster)

    assert text.startswith(" 3 of 8 answered 3 0 s ago gpu-0: Its pod does not answer.; gpu-1:")
    assert "and 2 more" in text


def test_what_was_left_out_of_what_they_say_is_said(viewer):
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, exporters=1, answered=1, message="Left out: 1 value of X on gpu-1.")

    assert said(viewer, cluster).startswith(" fresh 1 0 s ago Left out: 1 value of X on gpu-1.")


def test_where_none_answers_any_more_they_are_silent(viewer):
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, exporters=1, read_at=NOON - timedelta(minutes=3))

    assert said(viewer, cluster).startswith(" silent 0 3 min ago")


def test_where_all_answer_nothing_more_is_said(viewer):
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, exporters=8, answered=8)

    assert said(viewer, cluster).startswith(" fresh 8 0 s ago")


def test_before_the_first_round_nobody_was_asked(viewer):
    assert said(viewer, make.a_cluster()).startswith(" not asked for yet – never")


def test_those_there_was_no_time_for_are_said_to_be_next(viewer):
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, exporters=8, answered=7)

    assert "7 of 8 answered 7 0 s ago There was no time for the other exporters" in said(viewer, cluster)


def test_who_sees_a_pool_reads_no_names_of_nodes_and_objects_beside_it():
    cluster = make.a_cluster()
    make.an_exporter_round(cluster, exporters=2, answered=1, message="Left out: 1 value of X on gpu-1.")
    pool = make.a_pool(cluster)
    make.a_node(cluster, "gpu-0", pool=pool)
    make.a_reading(make.a_node(cluster, "gpu-1"), refused="Its pod does not answer.", refused_since=NOON)
    unread = {"u": {"name": "team-b/train-0", "reason": "It is too long."}}
    Bookmark.objects.filter(cluster=cluster, kind="pods").update(unread=unread)
    mine, whole = visiting(make.a_user("pia", role="viewer", on=pool)), visiting(make.a_user(role="viewer"))
    places = (f"/clusters/{cluster.pk}", f"/api/v1/clusters/{cluster.pk}")

    for place in places:
        assert "gpu-1" in whole.get(place).content.decode(), place
        assert "gpu-1" not in mine.get(place).content.decode(), place
        assert "team-b/train-0" in whole.get(place).content.decode(), place
        assert "team-b/train-0" not in mine.get(place).content.decode(), place
    assert "1 of 2 answered" in page(mine, places[0]).text
