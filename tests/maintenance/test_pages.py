"""The pages and REST of cases, as an operator, a viewer and a stranger."""

from datetime import timedelta

import pytest
import time_machine

from fleet.models import Node
from health.models import Finding
from maintenance.models import NodeCase
from operations.models import Operation
from tests.callers import calling
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, a_repair, a_user, an_operation
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> Node:
    return a_node(a_cluster(mode="operate"), "gpu-1")


def test_an_operator_opens_a_case_from_a_finding_and_follows_it(node):
    ada = visiting(a_user("ada", role="operator"))
    finding = a_finding(node.cluster, node=node, title="GPU 3 of gpu-1 fell off the bus")

    assert "Open a case of gpu-1" in page(ada, f"/findings?finding={finding.pk}").text
    assert "GPU 3 of gpu-1 fell off the bus" in page(ada, f"/cases/new?node={node.pk}&finding={finding.pk}").text
    sent = {"node": node.pk, "finding": finding.pk, "reason": "Xid 79."}
    assert ada.post("/cases/new", sent, follow=True).status_code == 200

    case = NodeCase.objects.get()
    shown = page(ada, f"/cases/{case.pk}")
    assert case.fault_at == finding.opened_at, "not when the case was opened"
    assert "Suspect" in shown.text
    assert f"/maintenance/operations/new?kind=quarantine&node={node.pk}" in shown.links
    assert "Quarantine Drain" in page(ada, f"/parts/nodes/{node.pk}/case").text
    assert "gpu-1" in page(ada, "/maintenance").text
    assert f"Case {case.pk}: opened. Xid 79." in page(ada, f"/nodes/{node.pk}/history").text
    assert f"Case {case.pk}: suspect" in page(ada, f"/findings?finding={finding.pk}").text


def test_a_case_names_the_logs_of_its_node_or_offers_them(node):
    """lifecycle R13: they are collected before a repair, and the case says where they are."""
    case = a_case(node)
    ada = visiting(a_user("ada", role="operator"))
    assert f"/maintenance/operations/new?kind=logs&node={node.pk}" in page(ada, f"/cases/{case.pk}").links

    operation = an_operation(node.cluster, node.name, steps=["log_bundle"], asked_at=case.opened_at)
    operation.nodes.update(node_uid=node.uid, state="done", reason="Kernel log and 8 logs of the GPU stack.")

    shown = page(ada, f"/cases/{case.pk}")
    assert "Collect logs" in shown.text
    assert "Logs done : Kernel log and 8 logs of the GPU stack." in shown.text
    assert f"/maintenance/operations/{operation.pk}" in shown.links


def test_a_case_and_its_operation_link_to_each_other_in_one_section_also_when_the_case_ended(node):
    """An operation that a person opens in the list stays in the section Changes."""
    case = a_case(node)
    drain = an_operation(node.cluster, node.name, "gpu-2", steps=["cordon", "drain"], asked_at=case.opened_at)
    drain.nodes.filter(node_name=node.name).update(node_uid=node.uid)
    ada = visiting(a_user("ada", role="operator"))
    assert f"/maintenance/operations/{drain.pk}" in page(ada, f"/cases/{case.pk}").links
    NodeCase.objects.filter(pk=case.pk).update(state="closed", state_since=NOON + timedelta(hours=1))

    for path in (f"/operations/{drain.pk}", f"/maintenance/operations/{drain.pk}"):
        shown = page(ada, path)
        assert f"Case {case.pk} of gpu-1" in shown.text
        assert f"/cases/{case.pk}" in shown.links
    paused = ada.post(f"/maintenance/operations/{drain.pk}/pause", {"reason": "Wait."})
    assert paused.headers["location"] == f"/maintenance/operations/{drain.pk}"
    later = an_operation(node.cluster, node.name, asked_at=NOON + timedelta(hours=2))
    later.nodes.update(node_uid=node.uid)
    assert f"Case {case.pk} of" not in page(ada, f"/operations/{later.pk}").text


def test_a_case_says_that_its_operation_waits_for_an_approval_or_is_paused(node):
    case = a_case(node)
    operation = an_operation(node.cluster, node.name, steps=["cordon", "drain"], asked_at=NOON, state="proposed")
    operation.nodes.update(node_uid=node.uid)
    ada = visiting(a_user("ada", role="operator"))
    assert "The operation waits for the approval of another person." in page(ada, f"/cases/{case.pk}").text
    Operation.objects.update(state="paused")
    assert "The operation is paused." in page(ada, f"/cases/{case.pk}").text


def test_the_shift_report_names_open_cases_with_owner_state_age_and_next_step(node):
    case = a_case(node, state="in-repair", reason="Xid 79.", opened_by="ada")
    a_repair(case, by="person", kind="hardware", answer="", ended_at=None, asked_by="bob", deadline=NOON)
    a_case(a_node(node.cluster, "gpu-2"), state="closed")
    vera = visiting(a_user("vera", role="viewer"))
    with time_machine.travel(NOON + timedelta(hours=2), tick=False):
        shown = page(vera, "/findings/shift-report")
        told = calling(a_user("wim", role="viewer")).get("/api/v1/shift-report").json()

    for part in (f"Case {case.pk} of gpu-1", "In repair for 2 h", "owner: bob", "opened 2 h ago"):
        assert part in shown.text
    assert any(link.endswith(f"/cases/{case.pk}") for link in shown.links)
    assert "The repair is overdue: bob asked for it. Answer it." in shown.text
    (line,) = told["cases"]["lines"]
    assert (line["number"], line["node"], line["owner"], line["state"]) == (case.pk, "gpu-1", "bob", "In repair")
    assert f"**Case {case.pk}** (gpu-1 in" in told["markdown"]
    stranger = visiting(a_user("eve", role="viewer", on=a_cluster("other")))
    assert "gpu-1" not in page(stranger, "/findings/shift-report").text


def test_the_page_of_a_repair_says_what_each_answer_does_and_a_release_asks_for_the_answer(node):
    case = a_case(node, state="in-repair")
    a_repair(case, by="person", kind="hardware", answer="", ended_at=None, then_test=True, then_release=True)
    ada = visiting(a_user("ada", role="operator"))

    text = page(ada, f"/cases/{case.pk}").text
    assert "Done A test then starts by itself. After a pass the node is released, as ada chose." in text
    assert "Nothing was done. The node returns to its state before the repair." in text
    assert "What was done (permanent)" in text

    form = ada.get(f"/operations/new?kind=release&node={node.pk}").content.decode()
    why = f"gpu-1 is in case {case.pk}: A repair is in progress. Answer the repair first."
    assert f'{why} <a href="/cases/{case.pk}">Case {case.pk} of gpu-1</a>' in form
    assert f'aria-disabled="true" title="{why}"' in form
    assert '<button class="button main">Release' not in form


def test_a_case_says_that_its_newest_fault_is_resolved_and_when_its_test_ended(node):
    began, ended = NOON - timedelta(hours=9), NOON - timedelta(hours=1)
    finding = a_finding(node.cluster, node=node, title="GPU 3 is hot", opened_at=began)
    case = a_case(node, finding=finding, state="validating", fault_at=began, passed_at=NOON - timedelta(hours=6))
    case.record("chosen-test", actor="bea", reason="Test.", now=ended)
    case.record("validation", actor="engine", reason="Passed.", now=ended, evidence={"result": "passed"})
    ada = visiting(a_user("ada", role="viewer"))
    with time_machine.travel(NOON, tick=False):
        assert "resolved" not in page(ada, f"/cases/{case.pk}").text
        Finding.objects.update(state="resolved", resolved_at=ended)
        text = page(ada, f"/cases/{case.pk}").text
    assert "resolved 1 h ago" in text
    assert "Last validation passed 1 h ago" in text
    assert "test, as chosen" in text


def test_an_act_on_an_outdated_page_is_refused_with_the_state_now(node):
    case = a_case(node, state="probation")
    ada = visiting(a_user("ada", role="operator"))

    answer = ada.post(f"/cases/{case.pk}/close", {"reason": "A mistake.", "seen": "suspect"}, follow=True)
    assert "back in service, on probation since" in answer.content.decode()
    assert "Your text was not saved: A mistake." in answer.content.decode()
    seen = f'name="seen" value="{case.state_version}" data-fill="seen"'
    assert seen in ada.get(f"/cases/{case.pk}").content.decode(), "the state with its begin"
    ada.post(f"/cases/{case.pk}/close", {"reason": "A mistake.", "seen": case.state_version})
    case.refresh_from_db()
    assert case.state == "closed"


def test_a_viewer_sees_why_the_buttons_are_locked_and_is_refused(node):
    bob = visiting(a_user("bob", role="viewer"))
    case = a_case(node)

    assert "Newest fault of the node no finding" in page(bob, f"/cases/{case.pk}").text
    assert "you need the role" in page(bob, f"/cases/{case.pk}").text
    assert "you need the role" in bob.post(f"/cases/{case.pk}/close", {"reason": "x"}, follow=True).content.decode()
    other = a_node(node.cluster, "gpu-2")
    assert bob.post("/cases/new", {"node": other.pk, "reason": "x"}).status_code == 409
    assert list(NodeCase.objects.values_list("state", flat=True)) == ["suspect"]


def test_a_stranger_gets_404(node):
    case = a_case(node)
    user = a_user("eve", role="operator", on=a_cluster("south"))
    eve, api = visiting(user), calling(user)

    for path in (f"/cases/{case.pk}", f"/cases/new?node={node.pk}", f"/parts/nodes/{node.pk}/case"):
        assert eve.get(path).status_code == 404
    assert eve.post(f"/cases/{case.pk}/close", {"reason": "x"}).status_code == 404
    assert api.get(f"/api/v1/cases/{case.pk}/moves").status_code == 404
    assert api.get("/api/v1/cases").json()["results"] == []


def test_rest_opens_shows_and_ends_a_case(node):
    ada = calling(a_user("ada", role="operator"))
    asked = {"cluster": node.cluster_id, "node": node.uid, "reason": "Xid 79."}

    opened = ada.post("/api/v1/cases", asked, format="json")
    again = ada.post("/api/v1/cases", asked, format="json")
    path = f"/api/v1/cases/{opened.json()['id']}"
    lost = ada.post(f"{path}/closures", {"reason": "x", "seen": "drained"}, format="json")
    closed = ada.post(f"{path}/closures", {"reason": "x", "seen": "suspect"}, format="json")

    assert (opened.status_code, opened.json()["state"]) == (201, "suspect")
    assert opened.json()["acts"][0] == {"act": "quarantine", "operation": "quarantine"}
    assert (again.status_code, lost.status_code, closed.status_code) == (409, 409, 200)
    assert "gpu-1 has an open case" in again.json()["detail"]
    assert "suspect since" in lost.json()["detail"]
    assert [move["move"] for move in ada.get(f"{path}/moves").json()["results"]] == ["closed", "opened"]
    assert ada.get("/api/v1/cases?state=closed&node=gpu-1").json()["count"] == 1


@pytest.mark.parametrize(
    ("given", "status"),
    [({"node": "uid-of-nobody"}, 400), ({"reason": ""}, 400), ({"finding": 2**40}, 404), ({"cluster": 2**40}, 404)],
)
def test_bad_input_opens_nothing(node, given, status):
    ada = calling(a_user("ada", role="operator"))
    asked = {"cluster": node.cluster_id, "node": node.uid, "reason": "x"} | given

    assert ada.post("/api/v1/cases", asked, format="json").status_code == status
    assert not NodeCase.objects.exists()


def test_rest_and_pages_repair_validate_and_override(node):
    api, ada = calling(a_user("ada", role="operator")), visiting(a_user("amy", role="operator"))
    case = a_case(node, state="drained")
    Node.objects.update(boot_id="first")
    path = f"/api/v1/cases/{case.pk}"

    task = {"kind": "reboot", "reason": "Reboot it.", "link": "https://tickets.example/7"}
    assert api.post(f"{path}/repairs", task, format="json").json()["state"] == "in-repair"
    assert api.post(f"{path}/repairs", task, format="json").status_code == 409
    shown = page(ada, f"/cases/{case.pk}").text
    assert "reboot, ticket" in shown
    assert "none yet. No earlier repair of this kind to estimate from. Deadline in 23 h" in shown
    answer = {"answer": "refused", "reason": "No access.", "seen": "in-repair"}
    assert ada.post(f"/cases/{case.pk}/answer", answer, follow=True).status_code == 200
    assert api.get(path).json()["state"] == "drained"
    failed = {"result": "failed", "test": "dcgmi diag -r 3", "reason": "Memory."}
    assert api.post(f"{path}/validations", failed, format="json").json()["why_no_return"]
    assert api.post(f"{path}/overrides", {"reason": "We need it."}, format="json").json()["why_no_return"] == ""
    assert "allowed the return without a validation" in page(ada, f"/cases/{case.pk}").text
    bad = {"kind": "reboot", "reason": "x", "link": "javascript:alert(1)"}
    assert api.post(f"{path}/repairs", bad, format="json").status_code == 400


def test_a_finding_of_another_node_opens_no_case(node):
    finding = a_finding(node.cluster, node=a_node(node.cluster, "gpu-2"))
    ada = visiting(a_user("ada", role="operator"))

    answer = ada.post("/cases/new", {"node": node.pk, "finding": finding.pk, "reason": "x"})

    assert answer.status_code == 409
    assert "The finding is not about gpu-1." in answer.content.decode()
