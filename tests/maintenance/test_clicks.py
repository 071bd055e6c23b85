"""A person takes a sick GPU from its finding to a validated return. Every click after the finding counts."""

import re
from html import unescape

import pytest
import time_machine

from fleet.models import Node
from health.models import Finding
from maintenance.models import NodeCase
from maintenance.triggers import recommended_operation
from operations.models import Operation
from simulator.kinds import POD
from tests.maintenance.test_chosen_steps import step as next_step
from tests.maintenance.test_rounds import followed
from tests.make import a_case, a_cluster, a_finding, a_node, a_user
from tests.operations.test_rounds import a_pod, end_pods, is_cordoned, rounds
from tests.operations.test_test_job_step import ends, finished
from tests.pages import visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db


class Walker:
    """A browser of one person. A link, a button that opens a dialog and one that sends a form are a click each."""

    def __init__(self, ground: Ground) -> None:
        self.clock = ground.clock
        self.client, self.clicks, self.html, self.path = visiting(a_user("bea", role="operator")), 0, "", ""

    def open(self, path: str) -> None:
        answer = self.client.get(path, follow=True)
        assert answer.status_code == 200, path
        self.html, self.path = answer.content.decode(), path

    def follow(self, title: str, *, is_main: bool = True) -> None:
        """Clicks the button with this title. `is_main`: it is the next step."""
        look = "button main" if is_main else "button"
        found = re.search(rf'<a class="{look}" href="([^"]+)">{re.escape(title)}', self.html)
        assert found, f"{title} is not the next step of {self.path}"
        self.clicks += 1
        self.open(unescape(found[1]))

    def send(self, action: str, button: str = "", **chosen: str) -> None:
        """Sends the form as it is filled in. `button`: the value of the one that sends it. A choice is two clicks."""
        (form,) = re.findall(rf'<form method="post" action="{action}".*?</form>', self.html, flags=re.DOTALL)
        fields = {"then": button} if button else {}
        assert not button or f'value="{button}"' in form
        for tag in re.findall(r"<input[^>]*>", form):
            given = dict(re.findall(r'(\w+)="([^"]*)"', tag))
            if given.get("type") != "checkbox" and "name" in given:
                fields[given["name"]] = unescape(given.get("value", ""))
        for name, text in re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>([^<]*)</textarea>', form):
            fields[name] = unescape(text).strip() or "As typed."
        for name, options in re.findall(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', form, flags=re.DOTALL):
            offered = re.findall(r'value="([^"]*)"', options)
            fields[name] = chosen.get(name) or offered[0]
            assert fields[name] in offered
        self.clicks += 1 + 2 * len(chosen)
        with time_machine.travel(self.clock(), tick=False):
            answer = self.client.post(action, fields, follow=True)
        self.html, self.path = answer.content.decode(), answer.redirect_chain[-1][0] if answer.redirect_chain else ""

    def open_dialog(self, title: str, act: str) -> None:
        seen = re.search(r'name="seen" value="([a-z-]+ [^"]+)" data-fill="seen"', self.html)
        assert seen, "the part that updates itself fills it in"
        opens = f'data-dialog="dialog-{act}" data-seen="{seen[1]}"'
        button = f'<button type="button" class="button main" {opens}>{title}</button>'
        assert button in self.html, f"{title} is not the next step"
        self.clicks += 1


@pytest.mark.parametrize(
    ("rule", "offer", "clicks"), [("gpu-xid", "", 4), ("gpu-xid", "person hardware", 8), ("gpu-hot", "", 6)]
)
def test_a_sick_gpu_is_taken_to_its_validated_return_in_few_clicks(ground: Ground, rule: str, offer: str, clicks: int):
    """Nothing is recommended for heat, and the person has the same way."""
    facts = {"xid": 79} if rule == "gpu-xid" else {}
    a_pod(ground, "web-1")
    for pod in ground.store.list(POD)[0]:  # other tenants, whose losses need consent
        if pod["spec"].get("nodeName") == CANARY and pod["metadata"]["name"] != "web-1":
            ground.store.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], grace_s=0)
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    Node.objects.filter(pk=node.pk).update(boot_id="first")
    finding = a_finding(
        ground.cluster, node=node, rule=rule, severity="critical", facts=facts, title="GPU 3 is off the bus",
        opened_at=ground.clock(),
    )  # fmt: skip
    bea = Walker(ground)
    bea.open(f"/parts/findings/{finding.pk}/case")
    bea.follow("Open a case, quarantine and drain", is_main=rule == "gpu-xid")
    bea.send("/maintenance/operations/new")
    case = NodeCase.objects.get()
    assert (bea.path, case.finding, case.reason) == (f"/cases/{case.pk}", finding, "GPU 3 is off the bus")
    drain = Operation.objects.get()
    rounds(ground, drain)
    end_pods(ground)
    rounds(ground, drain, 3)
    assert followed(ground, case).state == "drained"

    bea.open(f"/cases/{case.pk}")
    bea.open_dialog("Ask for a repair", "repair")
    bea.send(f"/cases/{case.pk}/repair", "release", **({"offer": offer} if offer else {}))
    is_answered = bool(offer) or rule == "gpu-hot"  # no reboot is suggested for heat: a person answers
    if is_answered:
        bea.open(f"/cases/{case.pk}")
        bea.open_dialog("Answer", "answer")
        bea.send(f"/cases/{case.pk}/answer")
    else:
        Node.objects.filter(pk=node.pk).update(boot_id="second", is_ready=True)
    assert followed(ground, case).state == "validating", "the boot proves the reboot, without an answer"

    Finding.objects.filter(pk=finding.pk).update(state="resolved", resolved_at=ground.clock())
    ground.clock.move(seconds=60)
    test = next_step(ground)
    rounds(ground, test)
    ends(ground)
    finished(ground, test)
    ground.clock.move(seconds=1)
    followed(ground, case)
    release = next_step(ground)
    assert (release.kind, release.asked_by) == ("release", "bea")
    rounds(ground, release)
    assert (followed(ground, case).state, is_cordoned(ground)) == ("probation", False)
    assert bea.clicks == clicks


def test_an_operation_from_a_finding_keeps_an_open_case_and_refuses_another_node():
    cluster = a_cluster(mode="operate")
    node, other = a_node(cluster, "gpu-1"), a_node(cluster, "gpu-2")
    finding = a_finding(cluster, node=node, rule="gpu-xid", facts={"xid": 79})
    case = a_case(node)
    ada = visiting(a_user("ada", role="operator"))
    sent = {"kind": "quarantine", "finding": finding.pk, "reason": "Xid 79."}

    asks = ada.get(f"/operations/new?kind=quarantine&node={node.pk}&finding={finding.pk}").content.decode()
    assert ("<h1>Quarantine" in asks, "Open a case" in asks) == (True, False)
    refused = ada.post("/operations/new", sent | {"nodes": other.pk})
    assert (refused.status_code, Operation.objects.count()) == (409, 0)
    assert ada.post("/operations/new", sent | {"nodes": node.pk}).headers["location"] == f"/cases/{case.pk}"
    assert NodeCase.objects.get() == case
    assert (
        f'<a href="/cases/{case.pk}">Case {case.pk} of gpu-1</a>'
        in ada.get(f"/operations/{Operation.objects.get().pk}").content.decode()
    )


@pytest.mark.parametrize(
    ("rule", "xid", "kind"),
    [("gpu-xid", 79, "drain"), ("gpu-xid", 74, "quarantine"), ("gpu-xid", 31, ""), ("gpu-hot", None, "")],
)
def test_a_finding_recommends_no_operation_for_what_an_application_caused(rule: str, xid: int | None, kind: str):
    """lifecycle, section 9."""
    assert recommended_operation(rule, xid) == kind
