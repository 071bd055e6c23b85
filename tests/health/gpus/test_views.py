from urllib.parse import urlencode

import pytest

from health import saved_views as views
from health.gpus.columns import COLUMNS
from health.gpus.views import GPU_VIEWS
from health.models import SavedView
from health.saved_views import BadView
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


def test_a_view_is_what_the_table_knows_of_an_address(bob):
    view = GPU_VIEWS.save(
        bob, name="  hot  ones ", query="?ordering=-temperature&page=3&next=//evil&faults=1", now=NOON
    )

    assert (view.name, view.query) == ("hot ones", "faults=1&ordering=-temperature")


def test_a_view_knows_every_column_and_what_exporters_are_to_say(bob):
    columns = "&".join(f"column={key}" for key, column in COLUMNS.items() if not column.is_fixed)
    asked = f"metric=ecc_uncorrected&reading=fresh&at_least=2&ordering=-row_remap_pending&{columns}"

    view = GPU_VIEWS.save(bob, name="ECC", query=asked, now=NOON)

    assert GPU_VIEWS.filter_sent(view.query) == GPU_VIEWS.filter_sent(asked)
    assert (GPU_VIEWS.filter_sent(view.query).metric, GPU_VIEWS.filter_sent(view.query).at_least) == (
        "ecc_uncorrected",
        "2",
    )
    make.a_node(make.a_cluster(), gpus=1)
    asked = view.query.replace("metric=ecc_uncorrected", "")
    shown = visiting(bob).get(f"/gpus?{asked}").content.decode()
    assert shown.count("<th>") + shown.count("<th ") == len(COLUMNS)


def test_the_same_name_again_is_the_same_view(bob):
    GPU_VIEWS.save(bob, name="mine", query="q=a", now=NOON)
    GPU_VIEWS.save(bob, name="mine", query="q=b", now=NOON)

    assert [view.query for view in SavedView.objects.all()] == ["q=b"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\u202eb"])
def test_a_name_that_is_none_is_refused(bob, name):
    with pytest.raises(BadView, match="needs a name"):
        GPU_VIEWS.save(bob, name=name, query="", now=NOON)


def test_a_name_that_is_too_long_is_refused_and_never_cut_to_that_of_another(bob):
    GPU_VIEWS.save(bob, name="prod", query="q=a", now=NOON)
    longer = f"prod{' ' * 60}{'staging' * 9}"

    with pytest.raises(BadView, match="needs a name"):
        GPU_VIEWS.save(bob, name=longer, query="q=b", now=NOON)
    visiting(bob).post("/gpus/views", {"name": longer, "query": "q=b"})
    visiting(bob).post("/gpus/views", {"name": f"prod{' ' * 60}staging", "query": "q=c"})

    assert dict(SavedView.objects.values_list("name", "query")) == {"prod": "q=a", "prod staging": "q=c"}


def test_a_filter_that_is_too_long_is_refused_and_never_cut_to_another(bob):
    query = urlencode({"q": "深" * 240})
    assert len(query) > views.LONGEST_QUERY

    with pytest.raises(BadView, match="too long to be saved"):
        GPU_VIEWS.save(bob, name="mine", query=query, now=NOON)
    refused = visiting(bob).post("/gpus/views", {"name": "mine", "query": f"?{query}"})

    assert refused.url == f"/gpus?{query}"
    assert not SavedView.objects.exists()


@pytest.mark.parametrize("name", ["", "three"])
def test_the_filter_of_a_view_that_is_refused_stays(bob, monkeypatch, name):
    monkeypatch.setattr(views, "MOST", 1)
    GPU_VIEWS.save(bob, name="one", query="", now=NOON)

    refused = visiting(bob).post("/gpus/views", {"name": name, "query": "?q=gpu-1&next=//evil"})

    assert refused.url == "/gpus?q=gpu-1"


def test_the_name_of_a_view_that_is_refused_comes_back_once(bob, monkeypatch):
    monkeypatch.setattr(views, "MOST", 0)
    client = visiting(bob)

    client.post("/gpus/views", {"name": "three <3>", "query": ""})
    shown, again = (client.get("/gpus").content.decode() for _ in range(2))

    assert 'name="name" value="three &lt;3&gt;"' in shown
    assert 'name="name" value=""' in again


def test_nobody_saves_more_than_so_many(bob, monkeypatch):
    monkeypatch.setattr(views, "MOST", 2)
    for name in ("one", "two"):
        GPU_VIEWS.save(bob, name=name, query="", now=NOON)

    with pytest.raises(BadView, match="You have 2 views"):
        GPU_VIEWS.save(bob, name="three", query="", now=NOON)
    GPU_VIEWS.save(bob, name="two", query="q=x", now=NOON)
    GPU_VIEWS.save(make.a_user(), name="three", query="", now=NOON)


def test_a_person_saves_opens_and_deletes_their_own_and_sees_no_others(bob):
    mine, theirs = visiting(bob), visiting(make.a_user("amy", role="viewer"))

    saved = mine.post("/gpus/views", {"name": HOSTILE[:60], "query": "?q=gpu-1"})
    view = SavedView.objects.get()

    assert saved.url == "/gpus?q=gpu-1"
    assert "/gpus?q=gpu-1" in page(mine, "/gpus").links
    assert "alert(1)" not in page(theirs, "/gpus").text
    assert theirs.post(f"/gpus/views/{view.pk}/forget").status_code == 404
    assert mine.get(f"/gpus/views/{view.pk}/forget").status_code == 405
    mine.post(f"/gpus/views/{view.pk}/forget")
    assert not SavedView.objects.exists()
    mine.post("/gpus/views", {"name": "", "query": ""})
    assert "A view needs a name" in page(mine, "/gpus").text
