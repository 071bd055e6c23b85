from datetime import timedelta

import pytest

from health.inbox.queries import counts_of
from health.lifecycle import FindingState
from health.models import Finding, TelemetrySource
from health.web import findings_page
from people.models import User
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def a_finding(cluster, node=None, **given):
    row = {
        "rule": "allocatable-below-expected",
        "title": "1 fewer nvidia.com/gpu can be allocated on gpu-001 than it had before.",
        "steps": ["Read the device plugin's log."],
    }
    return make.a_finding(cluster, node=node, **row | given)


def test_says_what_is_wrong_and_what_to_do(viewer):
    node = make.a_node(make.a_cluster("prod"))
    a_finding(node.cluster, node)

    seen = page(viewer, "/findings")

    assert "1 fewer nvidia.com/gpu can be allocated" in seen.text
    assert "Read the device plugin's log." in seen.text
    assert f"/nodes/{node.pk}" in seen.links


def test_the_worst_comes_first(viewer):
    cluster = make.a_cluster()
    a_finding(cluster, title="A small thing.", severity="note")
    a_finding(cluster, title="The big thing.", severity="critical", rule="other")

    text = page(viewer, "/findings").text

    assert text.index("The big thing.") < text.index("A small thing.")


@pytest.mark.parametrize("address", ["/parts/findings/strip", "/parts/pools/{pool}/findings"])
def test_what_somebody_looks_after_hides_nothing_that_nobody_does(viewer, address):
    """Ten GPUs have waited for a spare part since Monday: the eleventh fault is named all the same."""
    node = make.a_node(make.a_cluster())
    pool = make.a_pool(node.cluster, "h200")
    pool.nodes.add(node)
    taken = {"severity": "critical", "state": FindingState.ACKNOWLEDGED, "acknowledged_by": "ada"}
    for number in range(10):
        a_finding(node.cluster, node, rule=f"old-{number}", title=f"Spare part {number}.", **taken)
    monday = {"since": NOON - timedelta(days=4), "opened_at": NOON - timedelta(days=4)}
    a_finding(node.cluster, node, rule="new", title="GPU 3 is hot.", **monday)
    a_finding(node.cluster, node, rule="mere", title="Memory is nearly full.", severity="note")

    text = page(viewer, address.format(pool=pool.pk)).text

    said = [text.find(each) for each in ("GPU 3 is hot.", "Spare part 9.", "Memory is nearly full.")]
    assert 0 <= said[0] < said[1]
    assert said[2] == -1
    assert "acknowledged by ada" in text


@pytest.mark.parametrize(("criticals", "suspicions"), [(4, 1), (6, 1), (1, 2)])
def test_no_open_critical_is_hidden_behind_suspicions_and_notes(viewer, criticals, suspicions):
    cluster = make.a_cluster()
    for number in range(criticals):
        monday = {"since": NOON - timedelta(days=4), "opened_at": NOON - timedelta(days=4)}
        a_finding(cluster, rule=f"bad-{number}", title=f"Lost {number}.", severity="critical", **monday)
    for number in range(4):
        a_finding(cluster, rule=f"new-{number}", title=f"Perhaps {number}.", state=FindingState.CONFIRMING)
        a_finding(cluster, rule=f"mere-{number}", title=f"Note {number}.", severity="note")

    text = page(viewer, "/parts/findings/strip").text

    assert text.count("Lost") == min(criticals, 5)
    assert text.count("Perhaps") == suspicions


def test_the_strip_counts_what_somebody_looks_after_by_itself(viewer):
    cluster = make.a_cluster()
    a_finding(cluster, rule="a")
    a_finding(cluster, rule="b", state=FindingState.ACKNOWLEDGED, acknowledged_by="ada", assigned_to="eve")

    text = page(viewer, "/parts/findings/strip").text

    assert "all: 1 open, 1 acknowledged" in text
    assert "acknowledged by ada · eve’s" in text


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ({"severity": "critical"}, "critical"),
        ({"severity": "warning"}, "warning"),
        ({"severity": "note"}, "note"),
        ({"opened_at": None}, "being confirmed"),
        ({"resolved_at": NOON}, "resolved"),
    ],
)
def test_a_finding_has_the_same_shape_in_the_list_and_on_its_own_page(viewer, given, shape):
    node = make.a_node(make.a_cluster())
    finding = a_finding(node.cluster, node, **given)

    seen = viewer.get(f"/findings?tab=all&finding={finding.pk}").content.decode()

    shapes = {
        word
        for word in ("critical", "warning", "note", "being confirmed", "resolved")
        if f'aria-label="{word}"' in seen
    }
    assert shapes == {shape}


@pytest.mark.parametrize("address", ["/", "/nodes/{node.pk}", "/pools/{pool.pk}"])
def test_a_note_is_nowhere_drawn_as_a_warning(viewer, address):
    pool = make.a_pool(make.a_cluster())
    node = make.a_node(pool.cluster, pool=pool)
    a_finding(node.cluster, node, severity="note")

    seen = viewer.get(address.format(node=node, pool=pool)).content.decode()

    assert 'aria-label="note"' in seen
    assert 'aria-label="warning"' not in seen


def test_what_is_suspected_shows_from_the_first_second_with_when_it_is_confirmed(viewer):
    node = make.a_node(make.a_cluster(), unresolved=1)
    finding = a_finding(node.cluster, node, opened_at=None, since=NOON - timedelta(seconds=10))

    for address in ("/findings", "/", f"/nodes/{node.pk}", f"/clusters/{node.cluster_id}"):
        text = page(viewer, address).text
        assert finding.title in text
        assert "confirming since 11:59:50 , confirmed at 12:00:50 if it is still so" in text
    told = viewer.get("/api/v1/findings?confirming=true").json()["results"]
    assert [(one["state"], one["confirmed_at"]) for one in told] == [("confirming", "2026-11-21T12:00:50Z")]
    assert viewer.get("/api/v1/findings").json()["results"] == []


def test_a_node_page_and_the_fleet_page_name_it(viewer):
    node = make.a_node(make.a_cluster())
    a_finding(node.cluster, node)

    assert "1 fewer nvidia.com/gpu" in page(viewer, f"/nodes/{node.pk}").text
    assert "1 fewer nvidia.com/gpu" in page(viewer, "/").text


def test_the_page_of_a_cluster_says_how_many_it_does_not_show(viewer, monkeypatch):
    cluster = make.a_cluster("prod")
    for number in range(3):
        a_finding(cluster, title=f"Wrong {number}.", rule=f"rule-{number}")
    a_finding(cluster, title="Hm.", state="confirming", rule="another")
    path = f"/parts/clusters/{cluster.pk}/findings"

    assert "3 open" not in page(viewer, path).text
    monkeypatch.setattr(findings_page, "PER_PAGE", 2)
    cut = page(viewer, path)

    assert "the worst 2 of 3 open" in cut.text
    assert "/findings?cluster=prod" in cut.links


def test_the_page_of_a_cluster_says_how_many_more_are_confirmed_or_muted(viewer, monkeypatch):
    cluster = make.a_cluster("prod")
    for number in range(3):
        a_finding(cluster, title=f"Hm {number}.", state="confirming", rule=f"rule-{number}")
    a_finding(cluster, title="Known.", state="muted", rule="another")
    monkeypatch.setattr(findings_page, "PER_PAGE", 2)

    told = page(viewer, f"/parts/clusters/{cluster.pk}/findings")

    assert "and 1 more being confirmed" in told.text
    assert "1 finding is muted" in told.text
    assert {"/findings?cluster=prod", "/findings?tab=muted&cluster=prod"} <= set(told.links)


def test_how_many_findings_a_cluster_has_leads_to_those(viewer):
    cluster = make.a_cluster("prod")
    a_finding(cluster)

    assert page(viewer, f"/parts/clusters/{cluster.pk}/trouble").links == ["/findings?cluster=prod"]


def test_what_is_muted_is_said_wherever_it_is(viewer):
    pool = make.a_pool(make.a_cluster("prod"))
    node = make.a_node(pool.cluster, pool=pool, gpus=1)
    muted = {"node": node, "state": "muted"}
    a_finding(node.cluster, title="Its disk fails.", rule="a", **muted)
    a_finding(node.cluster, title="It is hot.", rule="b", subject=f"GPU 0 of {node.name}", **muted)

    for path in (f"nodes/{node.pk}/findings", f"nodes/{node.pk}/gpus/0/findings"):
        assert "Muted: It is hot. Its disk fails." in page(viewer, f"/parts/{path}").text
    told = viewer.get(f"/api/v1/nodes/{node.pk}/gpus/0").json()
    assert [one["title"] for one in told["muted"]] == ["It is hot.", "Its disk fails."]
    assert (told["findings"], told["findings_of_node"]) == ([], [])
    a_finding(node.cluster, node, title="It is wrong.", rule="c")
    assert "1 open, 2 muted" in page(viewer, "/parts/findings/strip").text
    assert "2 findings are muted." in page(viewer, f"/parts/pools/{pool.pk}/findings").text


def test_a_pool_without_an_open_finding_says_what_else_there_is(viewer):
    pool = make.a_pool(make.a_cluster())
    node = make.a_node(pool.cluster, pool=pool)
    make.a_source(pool.cluster)
    place = f"/parts/pools/{pool.pk}/findings"
    calm = page(viewer, place).text
    a_finding(pool.cluster, node, rule="a", opened_at=None, since=NOON - timedelta(seconds=10))
    a_finding(pool.cluster, node, rule="b", state="muted")
    TelemetrySource.objects.all().delete()

    text = page(viewer, place).text

    counts = counts_of(User.objects.get(), pool=pool)
    assert (counts.confirming, counts.muted, counts.unresolved) == (1, 1, 2)
    assert counts_of(User.objects.get(), pool=make.a_pool(pool.cluster, "empty")).unresolved == 0
    assert "No open findings." in calm
    assert "confirmed" not in calm
    assert "No GPU telemetry" not in calm
    assert "1 finding is being confirmed." in text
    assert "1 finding is muted." in text
    assert "No GPU telemetry." in text


def test_names_from_a_cluster_are_words_not_markup(viewer):
    a_finding(make.a_cluster(), title=HOSTILE)

    assert HOSTILE in page(viewer, "/findings").text


def test_somebody_of_a_pool_sees_the_findings_of_its_nodes_only(now):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster)
    mine, other = make.a_node(cluster, pool=pool), make.a_node(cluster)
    a_finding(cluster, mine, title="Mine is sick.")
    a_finding(cluster, other, title="The other is sick.")

    text = page(visiting(make.a_user(role="viewer", on=pool)), "/findings").text

    assert "Mine is sick." in text
    assert "The other is sick." not in text


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def test_a_node_and_its_gpu_have_the_worst_first_and_none_before_its_cause(viewer):
    node = make.a_node(make.a_cluster(), gpus=1)
    cause = a_finding(node.cluster, node, title="The cause.", severity="critical")
    given = {"opened_at": NOON, "node": node}
    a_finding(node.cluster, title="Listed under it.", severity="critical", parent=cause, rule="a", **given)
    a_finding(node.cluster, title="A newer warning.", rule="b", **given)
    a_finding(node.cluster, title="A small thing.", severity="note", rule="c", **given)
    in_order = ["The cause.", "Listed under it.", "A newer warning.", "A small thing."]

    text = page(viewer, f"/nodes/{node.pk}").text
    of_node = viewer.get(f"/api/v1/nodes/{node.pk}/gpus/0").json()["findings_of_node"]
    Finding.objects.update(subject=f"GPU 0 of {node.name}")
    of_gpu = viewer.get(f"/api/v1/nodes/{node.pk}/gpus/0").json()["findings"]

    assert sorted(in_order, key=text.index) == in_order
    assert [one["title"] for one in of_node] == [one["title"] for one in of_gpu] == in_order


def test_a_pool_has_the_worst_of_its_findings_first(viewer):
    cluster = make.a_cluster()
    pool = make.a_pool(cluster)
    node = make.a_node(cluster, pool=pool)
    a_finding(cluster, node, title="The big thing.", severity="critical")
    for number in range(5):
        a_finding(cluster, node, title="A small thing.", severity="note", rule=f"x{number}", opened_at=NOON)

    assert "The big thing." in page(viewer, f"/pools/{pool.pk}").text
