"""The inbox: tabs whose numbers add up, the chosen finding, the buttons, and what is said where nothing is."""

import math
import re
from array import array
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Bookmark, Observer
from fleet.web.summary import cluster_lines
from health.inbox import acts
from health.inbox.markdown import as_markdown
from health.inbox.queries import detail_of
from health.inbox.source_trials import ages_of
from health.lifecycle import FindingState
from health.models import Finding, FindingAct, Mute, RuleShadow, TelemetrySource
from health.sources import snapshots
from health.sources.exported_metrics import MISSED
from health.telemetry.base import TelemetryReading
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from people.models import User
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import HOSTILE, Page, page, visiting, wrong_beside

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def cluster():
    return make.a_cluster("prod")


@pytest.fixture
def ada():
    return visiting(make.a_user("ada", role="operator"))


@pytest.fixture
def bob():
    return visiting(make.a_user("bob", role="viewer"))


def one_of_each(cluster) -> dict[str, Finding]:
    make.a_mute(cluster, rule="muted")
    states = {state.value: {"rule": state.value, "state": state} for state in FindingState}
    states["confirming"] |= {"opened_at": None}
    states["resolved"] |= {"resolved_at": NOON}
    states["acknowledged"] |= {"acknowledged_by": "ada", "assigned_to": "ada", "acknowledged_at": NOON}
    return {
        name: make.a_finding(cluster, f"node {name}", title=f"It is {name}.", **given) for name, given in states.items()
    }


def test_the_numbers_of_the_tabs_add_up_and_what_is_explained_is_in_none(cluster, ada):
    rows = one_of_each(cluster)
    make.a_finding(cluster, "node x", title="A consequence.", rule="y", parent=rows["open"])

    text = page(ada, "/findings").text

    assert "Mine 1 Unacknowledged 1 All 4 Muted 1 Resolved 1" in text
    assert "4 unresolved: 1 open, 1 acknowledged, 1 being confirmed, 1 muted" in text
    assert "1 other listed under it" in text


@pytest.mark.parametrize(
    ("tab", "shown"),
    [
        ("mine", {"acknowledged"}),
        ("unacknowledged", {"open"}),
        ("all", {"open", "acknowledged", "confirming", "muted"}),
        ("muted", {"muted"}),
        ("resolved", {"resolved"}),
        ("nonsense", {"open", "acknowledged", "confirming", "muted"}),
    ],
)
def test_a_tab_shows_what_it_says(cluster, ada, tab, shown):
    rows = one_of_each(cluster)

    links = page(ada, f"/findings?tab={tab}").links

    assert {name for name, row in rows.items() if any(f"finding={row.pk}" in link for link in links)} == shown


def test_the_chosen_one_says_all_there_is(cluster, ada):
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    pool = make.a_pool(cluster)
    node = make.a_node(cluster, "gpu-001", pool=pool)
    make.a_pod(node, "train-0", gpus=8)
    Bookmark.objects.filter(cluster=cluster).update(listed_at=NOON)
    make.a_node_event(node, "The driver is 570.172.08.", at=NOON - timedelta(minutes=20))
    finding = make.a_finding(
        cluster, node=node, rule="allocatable-below-expected", causes=["The device plugin offers no GPU."],
        evidence=[{"label": "Allocatable", "value": 7, "unit": "GPUs"}],
    )  # fmt: skip
    make.a_finding(cluster, node=node, rule="z", parent=finding, title="The exporter is silent.")
    make.a_finding(make.a_cluster("other"), rule="allocatable-below-expected")
    make.a_mute(cluster, rule=finding.rule, reason="We know.")
    FindingAct.objects.create(finding=finding, rule=finding.rule, verb="accept", by="amy", at=NOON, reason="Yes.")

    seen = page(ada, f"/findings?finding={finding.pk}")

    for words in (
        "GPUs missing · warning · open",
        "Probable cause The device plugin offers no GPU.",
        "Allocatable 7 GPUs",
        "1 pod in 1 namespace has 8 GPUs there.",
        "train-0",
        "The exporter is silent.",
        "1 other finding of this rule",
        "The driver is 570.172.08.",
        "ada muted it until 2026-11-21 20:00 UTC",
        "amy: accept: Yes.",
        "for this rule: accepted 1, dismissed 0",
        "**It is wrong.**",
    ):
        assert words in seen.text, words
    assert "/findings/rules/allocatable-below-expected#steps" in seen.links


def test_a_page_that_follows_what_changes_stays_at_the_finding_that_it_shows(cluster, ada):
    first = make.a_finding(cluster, title="The first.")
    shown = page(ada, "/findings").text
    make.a_finding(cluster, rule="y", title="A worse one.", severity="critical")

    html = ada.get(f"/parts/findings?shown={first.pk}").content.decode()

    assert "The first." in shown
    assert f"/findings/{first.pk}/acknowledge" in html
    assert "is-asked" not in html


def test_a_finding_that_is_gone_or_not_theirs_says_so(cluster, ada):
    other = make.a_finding(make.a_cluster("secret"), title="Nobody's business.")
    mine = visiting(make.a_user(role="viewer", on=cluster))

    theirs = page(mine, f"/findings?finding={other.pk}").text

    assert "Finding not found." in page(ada, "/findings?finding=999999").text
    assert "Finding not found." in theirs
    assert "Nobody's business." not in theirs
    assert "Finding not found." not in page(ada, "/findings?finding=nonsense").text


def test_a_pool_narrows_it_to_what_is_about_its_nodes_and_its_page_leads_there(cluster, ada):
    pool = make.a_pool(cluster, "h100")
    mine, other = (make.a_node(cluster, name, pool=of) for name, of in (("gpu-1", pool), ("gpu-2", None)))
    for node in (mine, other):
        make.a_finding(cluster, f"GPU 0 of {node.name}", node=node, title=f"It is hot on {node.name}.")
    make.a_finding(cluster, "node gone", title="It is of no node.")

    link = re.search(r'href="(/findings[?]pool=[^"]+)"', ada.get(f"/parts/pools/{pool.pk}/findings").content.decode())
    seen = page(ada, link.group(1)).text

    assert "It is hot on gpu-1." in seen
    assert "It is hot on gpu-2." not in seen
    assert "It is of no node." not in seen
    assert "0 of 3 findings match." in page(ada, "/findings?pool=prod/gone").text
    assert "0 of 3 findings match." in page(ada, "/findings?pool=h100").text


def test_nobody_finds_by_a_pool_that_they_do_not_see(cluster):
    mine, other = (make.a_pool(cluster, name) for name in ("mine", "other"))
    node = make.a_node(cluster, "gpu-1", pool=mine)
    other.nodes.add(node)
    finding = make.a_finding(cluster, node=node, title="It is hot.")
    pat = make.a_user("pat", role="viewer", on=mine)

    shown = {pool.name: page(visiting(pat), f"/findings?pool=prod/{pool.name}").text for pool in (mine, other)}
    told = {pool.name: calling(pat).get(f"/api/v1/findings?pool={pool.pk}").json()["results"] for pool in (mine, other)}

    assert {name: "It is hot." in text for name, text in shown.items()} == {"mine": True, "other": False}
    assert {name: [row["id"] for row in rows] for name, rows in told.items()} == {"mine": [finding.pk], "other": []}


@pytest.mark.parametrize("asked", ["cluster=no", "pool=prod/no", "severity=note", "rule=no", "together=999"])
def test_a_filter_that_finds_nothing_is_left_by_one_link(cluster, ada, asked):
    make.a_finding(cluster, severity="critical", title="It is hot.")

    seen = ada.get(f"/findings?tab=unacknowledged&{asked}").content.decode()
    link = re.search(r'href="([^"]+)">Clear the filters', seen)

    assert "It is hot." in page(ada, link.group(1).replace("&amp;", "&")).text


def test_an_empty_filter_is_not_all_quiet(cluster, ada):
    make.a_finding(cluster)

    seen = page(ada, "/findings?severity=critical")

    assert "0 of 1 finding match." in seen.text
    assert "No findings." not in seen.text


def test_all_quiet_names_how_old_each_source_is(ada):
    cluster = make.a_cluster("prod")
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    make.a_source(cluster)

    text = page(ada, "/findings").text

    assert "How old each source is" in text
    assert "cluster prod" in text
    assert "telemetry of prod" in text


def test_a_mute_keeps_it_from_being_all_quiet(cluster, ada):
    make.a_finding(cluster, state=FindingState.MUTED)

    assert "No findings." not in page(ada, "/findings?tab=unacknowledged").text
    assert "1 finding is muted" in page(ada, "/findings?tab=unacknowledged").text


def test_a_viewer_sees_each_button_with_the_reason(cluster, bob):
    finding = make.a_finding(cluster)

    html = bob.get(f"/findings?finding={finding.pk}").content.decode()

    assert html.count("To act on findings you need the role operator, approver or admin on cluster prod.") >= 7
    assert "data-dialog=&quot;dialog-act" not in html
    assert 'data-dialog="dialog-act' not in html


@pytest.mark.parametrize("verb", ["acknowledge", "assign", "unassign", "accept", "dismiss", "mute"])
def test_who_may_not_changes_nothing(cluster, bob, verb):
    finding = make.a_finding(cluster)

    said = bob.post(
        f"/findings/{finding.pk}/{verb}", {"reason": "x", "to": "bob", "scope": "finding", "hours": "8"}, follow=True
    )

    assert "you need the role operator" in said.content.decode()
    assert not FindingAct.objects.exists()


def test_nobody_whose_name_is_the_beginning_of_another_is_assigned(cluster):
    finding = make.a_finding(cluster)
    ada = visiting(make.a_user("a" * 150, role="operator"))

    said = ada.post(f"/findings/{finding.pk}/assign", {"to": "a" * 151}, follow=True).content.decode()

    assert "may see this finding" in said
    assert not FindingAct.objects.exists()


def test_a_stranger_finds_nothing(cluster):
    finding, mute = make.a_finding(cluster), make.a_mute(cluster)
    eve = visiting(make.a_user("eve"))

    assert eve.post(f"/findings/{finding.pk}/acknowledge").status_code == 404
    assert eve.post(f"/mutes/{mute.pk}/lift", {"reason": "x"}).status_code == 404


def test_an_approver_of_the_pool_of_its_node_may_act(cluster):
    pool = make.a_pool(cluster)
    mine = make.a_finding(cluster, node=make.a_node(cluster, pool=pool))
    amy = visiting(make.a_user("amy", role="approver", on=pool))

    amy.post(f"/findings/{mine.pk}/acknowledge")
    said = amy.post(f"/findings/{mine.pk}/mute", {"reason": "x", "scope": "cluster", "hours": "8"}, follow=True)

    assert Finding.objects.get().acknowledged_by == "amy"
    assert "you need the role" in said.content.decode()
    assert not Mute.objects.exists()


@pytest.mark.parametrize("hours", ["", "0", "337", "eight", "８"])
def test_what_is_wrong_with_a_mute_stands_beside_each_field(cluster, ada, hours):
    finding = make.a_finding(cluster, node=make.a_node(cluster))
    asked = {"reason": "Known.", "scope": "pool-999", "hours": hours}

    html = ada.post(f"/findings/{finding.pk}/mute", asked, follow=True).content.decode()

    assert wrong_beside(html, "act-scope") == "Name a pool that contains the node."
    assert wrong_beside(html, "act-hours")
    assert wrong_beside(html, "reason-act-mute") == ""
    assert "Known.</textarea>" in html
    assert not Mute.objects.exists()


def test_a_mute_of_a_pool_that_one_does_not_see_is_not_named(cluster):
    mine, other = make.a_pool(cluster, name="mine"), make.a_pool(cluster, name="payroll")
    node = make.a_node(cluster, pool=mine)
    node.pools.add(other)
    finding = make.a_finding(cluster, node=node, state=FindingState.MUTED)
    make.a_mute(cluster, pool=other)
    make.a_mute(cluster, pool=mine, reason="Known here.")
    bob = visiting(make.a_user("bob", role="viewer", on=mine))

    seen = page(bob, f"/findings?tab=muted&finding={finding.pk}").text
    told = bob.get(f"/api/v1/findings/{finding.pk}")

    assert "payroll" not in seen + told.content.decode()
    assert "Muted in a pool of its node that you do not see." in seen
    assert "Known here." in seen
    assert [mute["pool"]["name"] for mute in told.json()["mutes"]] == ["mine"]


def test_evidence_causes_and_steps_are_lists(cluster, ada):
    evidence = [
        {"label": "Energy", "value": 525495285.03400004, "unit": "J"},
        {"label": "Must last", "value": 300, "unit": "s"},
    ]
    causes, steps = ["The air.", "Its cooler."], ["Check the air.", "Check its cooler."]
    finding = make.a_finding(cluster, title="It is hot", summary="Very.", evidence=evidence, causes=causes, steps=steps)

    seen = page(ada, f"/findings?finding={finding.pk}").text

    assert "It is hot Very. " in seen
    assert "Evidence Energy 5.25495e+08 J Must last 5 min " in seen
    assert "Probable causes The air. Its cooler. Steps Check the air. Check its cooler." in seen


def test_the_pods_that_it_hits_are_named_in_what_is_copied(cluster, ada):
    node = make.a_node(cluster)
    for number in range(6):
        make.a_pod(node, f"train-{number}")
    detail = detail_of(make.a_finding(cluster, node=node), make.a_user("root", role="admin"), now=NOON)

    text = as_markdown(detail, link="https://qd.example/findings", now=NOON)

    assert re.search(r"^- Impact: 6 pods .*\. \(.*/train-0, .*, …\)$", text, re.MULTILINE)


def test_the_buttons_do_what_they_say(cluster, ada):
    finding = make.a_finding(cluster)
    back = f"/findings?tab=all&finding={finding.pk}"

    answer = ada.post(f"/findings/{finding.pk}/acknowledge", {"back": back, "key": "k"})
    ada.post(f"/findings/{finding.pk}/dismiss", {"reason": "It is the riser."})
    ada.post(f"/findings/{finding.pk}/mute", {"reason": "Until Monday.", "scope": "cluster", "hours": "72"})

    assert answer.url == back
    seen, mute = Finding.objects.get(), Mute.objects.get()
    assert (seen.state, seen.feedback, mute.until) == (FindingState.MUTED, "dismissed", NOON + timedelta(hours=72))
    ada.post(f"/mutes/{mute.pk}/lift", {"reason": "Monday."})
    assert Finding.objects.get().state == FindingState.OPEN


def test_the_form_of_an_act_that_was_undone_says_what_is_so_now(cluster, ada):
    finding = make.a_finding(cluster)
    ada.post(f"/findings/{finding.pk}/acknowledge", {"key": "k"}, follow=True)
    visiting(make.a_user("amy", role="approver")).post(f"/findings/{finding.pk}/unassign", {"key": "k"})

    answer = ada.post(f"/findings/{finding.pk}/acknowledge", {"key": "k"}, follow=True)

    seen = Page(answer.content.decode()).text
    assert "is no longer in effect. The finding is open and nobody’s." in seen
    assert "Acknowledged." not in seen


def seen_in(client, finding, verb: str) -> str:
    shown = client.get(f"/findings?finding={finding.pk}").content.decode()
    on_button, in_form = (
        re.findall(rf'data-dialog="dialog-act-{verb}"[^>]* data-seen="(\w*)"', shown),
        re.findall(rf'id="dialog-act-{verb}".*?name="seen" value="(\w*)"', shown, re.DOTALL),
    )
    assert on_button == in_form[:1]
    return in_form[0]


def told(client, finding, verb: str, seen: str, **given: str) -> str:
    client.post(f"/findings/{finding.pk}/{verb}", {"reason": "Mine.", "seen": seen, **given})
    return page(client, f"/findings?finding={finding.pk}").text


@pytest.mark.parametrize("verb", ["assign", "unassign"])
def test_what_became_somebody_elses_since_the_page_was_opened_is_theirs(cluster, ada, verb):
    finding = make.a_finding(cluster, assigned_to="zoe")
    make.a_user("bob", role="viewer")
    make.a_user("amy", role="viewer")
    seen = seen_in(ada, finding, verb)
    acts.assign(finding, to="amy", actor="amy", now=NOON)

    said = told(ada, finding, verb, seen, to="bob")

    assert Finding.objects.get().assigned_to == "amy"
    assert "The finding is now amy’s." in said
    told(ada, finding, verb, seen_in(ada, finding, verb), to="bob")
    assert Finding.objects.get().assigned_to == ("bob" if verb == "assign" else "")


@pytest.mark.parametrize("verb", ["accept", "dismiss"])
def test_no_action_is_judged_that_the_page_never_showed(cluster, ada, verb):
    finding = make.a_finding(cluster, steps=["Reset it."])
    seen = seen_in(ada, finding, verb)
    Finding.objects.update(steps=["Replace it."])

    said = told(ada, finding, verb, seen)

    assert Finding.objects.get().feedback == ""
    assert "The steps have changed since you read them: Replace it." in said
    told(ada, finding, verb, seen_in(ada, finding, verb))
    assert Finding.objects.get().feedback


def test_what_was_written_for_a_refused_act_comes_back_once(cluster, ada):
    evaluated = make.a_finding(cluster, feedback="accepted", feedback_by="amy", feedback_reason="Right.")
    other = make.a_finding(cluster, rule="other")
    wrote = "It is the riser: I have seen it <there>."

    ada.post(f"/findings/{evaluated.pk}/dismiss", {"reason": wrote})
    elsewhere = page(ada, f"/findings?finding={other.pk}").text
    refused, again = (page(ada, f"/findings?finding={evaluated.pk}").text for _ in range(2))

    assert f"Your text was not saved: {wrote}" in refused
    assert wrote not in elsewhere
    assert wrote not in again
    ada.post(f"/findings/{other.pk}/mute", {"reason": wrote, "scope": "finding", "hours": "9999"})
    assert re.search(f"Reason \\(permanent\\) {wrote} Cancel Mute", page(ada, f"/findings?finding={other.pk}").text)


def test_whom_where_and_how_long_come_back_with_the_reason(cluster, ada):
    finding = make.a_finding(cluster, node=make.a_node(cluster, "gpu-1"))
    path = f"/findings/{finding.pk}"

    ada.post(f"{path}/assign", {"to": "<nobody>", "reason": "Theirs."})
    shown = ada.get(f"/findings?finding={finding.pk}").content.decode()
    ada.post(f"{path}/mute", {"reason": " ", "scope": "node", "hours": "72"})
    muting, again = (ada.get(f"/findings?finding={finding.pk}").content.decode() for _ in range(2))

    assert 'name="to" value="&lt;nobody&gt;"' in shown
    assert '<option value="8" selected>' in shown
    assert '<option value="node" selected>' in muting
    assert '<option value="72" selected>' in muting
    assert 'name="to" value=""' in muting
    assert '<option value="8" selected>' in again


def test_whom_it_was_to_be_given_is_said_where_it_cannot_be_any_more(cluster, ada):
    finding = make.a_finding(cluster, state="resolved", resolved_at=NOON)

    ada.post(f"/findings/{finding.pk}/assign", {"to": "amy", "reason": "Theirs."})

    assert "Your text was not saved: amy Theirs." in page(ada, f"/findings?finding={finding.pk}").text


def test_what_was_written_to_lift_a_mute_that_is_over_comes_back_once(cluster, ada):
    finding, mute = make.a_finding(cluster), make.a_mute(cluster, ended_at=NOON, ended_by="amy")
    back, wrote = f"/findings?finding={finding.pk}", "The riser is <new>."

    answer = ada.post(f"/mutes/{mute.pk}/lift", {"reason": wrote, "back": back})
    refused, again = (page(ada, answer.url).text for _ in range(2))

    assert "amy has already lifted the mute" in refused
    assert f"Your text was not saved: {wrote}" in refused
    assert wrote not in again


def test_what_was_written_to_lift_a_mute_comes_back_where_no_finding_is_left(cluster, ada):
    mute = make.a_mute(cluster, ended_at=NOON, ended_by="amy")

    answer = ada.post(f"/mutes/{mute.pk}/lift", {"reason": "It is new."})

    assert "Your text was not saved: It is new." in page(ada, answer.url).text


@pytest.mark.parametrize("back", ["https://evil.example/findings?x", "//evil.example", "/people"])
def test_nobody_is_led_elsewhere(cluster, ada, back):
    finding = make.a_finding(cluster)

    assert ada.post(f"/findings/{finding.pk}/acknowledge", {"back": back}).url == f"/findings?finding={finding.pk}"


def test_names_are_words_in_every_corner(cluster, ada):
    finding = make.a_finding(
        cluster,
        HOSTILE,
        title=HOSTILE,
        steps=[HOSTILE],
        evidence=[{"label": HOSTILE, "value": HOSTILE, "unit": HOSTILE}],
    )

    assert HOSTILE in page(ada, f"/findings?finding={finding.pk}").text
    assert "\\<script\\>" in page(ada, f"/findings?finding={finding.pk}").text


def test_nobody_is_called_by_what_is_pasted_into_a_chat(cluster):
    finding = make.a_finding(cluster, "node @here", title="@everyone look.", steps=["Ask @ada."])
    detail = detail_of(finding, make.a_user("root", role="admin"), now=NOON)

    text = as_markdown(detail, link="https://qd.example/findings", now=NOON)

    assert re.findall("@(.)", text) == ["\u200b"] * 3


def test_the_page_of_rules_names_each_and_what_was_said_of_it(cluster, ada):
    make.a_finding(cluster, rule="gpu-xid")
    FindingAct.objects.create(rule="gpu-xid", verb="dismiss", by="amy", at=NOON)

    seen = page(ada, "/findings/rules")

    assert {"gpu-xid", "plan-halted", "allocatable-below-expected"} <= set(seen.ids)
    assert "/findings?rule=gpu-xid" in seen.links


def test_it_costs_no_more_for_more(cluster, ada, queries_of):
    node = make.a_node(cluster)
    make.a_pod(node)
    finding = make.a_finding(cluster, "GPU 0 of gpu-001", node=node)

    def add(numbers):
        for number in numbers:
            other = make.a_node(cluster, f"more-{number}")
            make.a_pod(other, f"more-{number}")
            since = NOON - timedelta(hours=number + 1)  # else they are one row
            row = make.a_finding(cluster, f"GPU {number} of more-{number}", node=other, since=since)
            make.a_finding(cluster, node=other, parent=row, rule="y")
            make.a_mute(cluster)

    add(range(9))  # what two nodes share is compared, and what is not listed is counted
    few = queries_of(ada, f"/findings?finding={finding.pk}")
    add(range(9, 14))

    assert queries_of(ada, f"/findings?finding={finding.pk}") == few


def test_of_many_the_nodes_are_not_read_and_whom_they_hit_is_read_once(cluster, ada):
    for number in range(3):
        node = make.a_node(cluster, f"gpu-{number}")
        make.a_finding(cluster, f"node {node.name}", node=node, since=NOON - timedelta(hours=number))

    with CaptureQueriesContext(connection) as asked:
        assert ada.get("/findings").status_code == 200

    said = [each["sql"] for each in asked]
    of_nodes = [sql for sql in said if '"fleet_node"."annotations"' in sql and 'FROM "health_mute"' not in sql]
    assert len(of_nodes) == 1  # of the chosen one
    assert 'FROM "fleet_node" WHERE' in of_nodes[0]
    assert sum('"fleet_pod"."namespace"' in sql for sql in said) == 1


@pytest.mark.parametrize("others", [3, 8, 11])
def test_where_all_of_a_rule_are_alike_they_are_counted_once(cluster, others):
    first, *_ = [make.a_finding(cluster, f"node {number}") for number in range(others + 1)]

    detail = detail_of(first, make.a_user("root", role="admin"), now=NOON)

    assert (detail.elsewhere, len(detail.alike), detail.alike_left_out) == (others, min(others, 8), max(0, others - 8))


def test_rules_on_trial_are_said_where_findings_stand(bob):
    assert "shadow mode" not in page(bob, "/findings").text

    for rule, says in (("gpu-hot", "1 rule in shadow mode"), ("gpu-xid", "2 rules in shadow mode")):
        RuleShadow.objects.create(rule=rule, by="ada", at=NOON, reason="New.")

        shown = page(bob, "/findings")
        assert says in shown.text
        assert "/findings/rules" in shown.links


def test_what_gpus_said_is_drawn_where_its_node_is_there(cluster, ada):
    node = make.a_node(cluster)
    hot = make.a_finding(cluster, "GPU 3 of gpu-1", node=node, rule="gpu-hot")
    slow = make.a_finding(cluster, "GPU 3 of gpu-1", node=node, rule="gpu-pcie-replays")
    gone = make.a_finding(cluster, "GPU 3 of gpu-2", rule="gpu-hot")
    other = make.a_finding(cluster, node=node, rule="node-not-ready")
    place = f'data-history="/api/v1/findings/{hot.pk}/telemetry"'

    assert place in ada.get(f"/findings?finding={hot.pk}").content.decode()
    slower = page(ada, f"/findings?finding={slow.pk}").text
    assert "replays an hour: a rate, so the counter plot has no limit line" in slower
    assert "No GPU telemetry: the node is gone" in page(ada, f"/findings?finding={gone.pk}").text
    assert "GPU telemetry, 30 min before" not in page(ada, f"/findings?finding={other.pk}").text


def test_plots_of_one_that_came_back_are_others_and_end_half_an_hour_after_it_did(cluster, ada):
    node = make.a_node(cluster)
    hot = make.a_finding(cluster, "GPU 3 of gpu-1", node=node, rule="gpu-hot", since=NOON - timedelta(minutes=40))
    before = ada.get(f"/findings?finding={hot.pk}").content.decode()

    Finding.objects.filter(pk=hot.pk).update(since=NOON)
    after = ada.get(f"/findings?finding={hot.pk}").content.decode()

    assert f'data-own="finding-{hot.pk}-2026-11-21T11:20:00+00:00" data-until="2026-11-21T11:50:00+00:00"' in before
    assert f'data-own="finding-{hot.pk}-2026-11-21T12:00:00+00:00" data-until="2026-11-21T12:30:00+00:00"' in after


def test_says_where_the_same_code_is_and_when_the_driver_changed(cluster, ada):
    node, other = make.a_node(cluster, "gpu-1"), make.a_node(cluster, "gpu-2")
    make.a_node_event(node, "Runs driver 2.", at=NOON - timedelta(hours=2), detail={"column": "driver_version"})
    fallen = make.a_finding(
        cluster, "GPU 3 of gpu-1", node=node, rule="gpu-xid", facts={"xid": 79}, since=NOON - timedelta(hours=1)
    )
    make.a_finding(cluster, "GPU 5 of gpu-2", node=other, rule="gpu-xid", facts={"xid": 79})
    make.a_finding(cluster, "GPU 6 of gpu-2", node=other, rule="gpu-xid", facts={"xid": 31})

    shown = page(ada, f"/findings?finding={fallen.pk}").text

    assert "Xid 79 also on GPU 5 of gpu-2" in shown
    assert "2 other findings of this rule" in shown
    assert "1 h before its start" in shown
    assert "- Xid 79 also: GPU 5 of gpu-2 in" in shown


def test_conditions_are_alike_by_their_type(cluster, ada):
    nodes = [make.a_node(cluster, f"gpu-{number}") for number in range(3)]
    first, same, _ = [
        make.a_finding(cluster, node=node, rule="node-conditions", facts={kind: "words"})
        for node, kind in zip(nodes, ("GpuMemWatch", "GpuMemWatch", "KernelDeadlock"), strict=True)
    ]

    detail = detail_of(first, make.a_user("root", role="admin"), now=NOON)

    assert (detail.code, detail.alike, detail.elsewhere) == ("GpuMemWatch", [same], 2)


def test_all_quiet_says_of_each_source_how_old_it_is_or_that_there_is_none(cluster, ada):
    make.a_node(cluster, gpus=1)
    text = page(ada, "/findings").text
    assert f"telemetry of {cluster.name}" in text
    assert "It has no source, so the health of its GPUs is unknown." in text

    make.a_source(cluster, answered_at=NOON - timedelta(hours=2))
    assert "The source was not queried since" in page(ada, "/findings").text


USUAL = frozenset(key for key, metric in METRICS.items() if metric.is_usual)
BLIND = (
    "5 rules lack an exported metric and find nothing here: Many corrected memory errors, "
    "NVLink errors, GPU slowed down, Reported unhealthy by DCGM, GPU power near its limit. Uncorrected ECC "
    "errors are not exported; the rule Uncorrectable memory errors sees only rows that were remapped within the "
    "last hour."
)


def hear(cluster, **has: frozenset[str]) -> None:
    """By node what its exporter says a moment ago."""
    for name in has:
        make.a_node(cluster, name, gpus=1)
    snapshot = TelemetrySnapshot(NOON.timestamp(), tuple(GpuDevice(name, 0, f"GPU-{name}") for name in sorted(has)))
    for key in frozenset().union(*has.values()):
        times = [NOON.timestamp() if key in has[device.node_name] else math.nan for device in snapshot.devices]
        snapshot.columns[key] = MetricColumn(array("d", times), array("d", times))
    snapshots.forget(cluster.pk)
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset(snapshot.columns), {}))
    make.a_source(cluster, exported=sorted(snapshot.columns))


def of_telemetry(cluster):
    root = User.objects.filter(username="root").first() or make.a_user("root", role="admin")
    return ages_of(root, cluster_lines(root, now=NOON), now=NOON)[1]


@pytest.mark.parametrize(("exported", "said"), [(USUAL, BLIND), (frozenset(METRICS), "")])
def test_all_quiet_says_which_rules_see_nothing_as_what_they_read_is_not_exported(cluster, redis, exported, said):
    hear(cluster, gpu1=exported)

    assert (of_telemetry(cluster).reason, of_telemetry(cluster).is_late) == (said, False)
    TelemetrySource.objects.all().delete()
    make.an_exporter_round(cluster, read_at=NOON, answered=1)
    assert (of_telemetry(cluster).reason, of_telemetry(cluster).is_late) == (said, False)


def test_all_quiet_is_no_green_word_where_nothing_at_all_is_exported(cluster, redis):
    hear(cluster, gpu1=frozenset())

    age = of_telemetry(cluster)

    assert age.is_late
    assert age.reason.startswith(f"{len(MISSED)} rules lack an exported metric and find nothing")


def test_all_quiet_says_on_how_many_nodes_rules_see_nothing(cluster, redis):
    """Each exporter has its own metrics: those of others speak for nobody."""
    every = frozenset(METRICS)
    hear(cluster, gpu1=every, gpu2=every - {"temperature_celsius"}, gpu3=every - {"temperature_celsius", "xid"})
    make.a_node(cluster, "silent", gpus=1)

    age = of_telemetry(cluster)

    assert not age.is_late
    assert age.reason == (
        "1 rule lacks an exported metric on 2 of 4 nodes and finds nothing there: GPU too hot. "
        "1 of 4 nodes reported nothing within a day."
    )


def test_all_quiet_says_beside_what_exporters_say_which_rules_see_nothing(cluster, redis):
    hear(cluster, gpu1=USUAL)
    TelemetrySource.objects.all().delete()
    make.an_exporter_round(cluster, read_at=NOON, answered=1, message="Impossible values were left out: 1 value.")

    assert of_telemetry(cluster).reason == f"Impossible values were left out: 1 value. {BLIND}"


def test_who_sees_a_pool_is_told_of_its_nodes_alone(cluster, redis):
    hear(cluster, gpu1=frozenset(METRICS), gpu2=USUAL)
    pool = make.a_pool(cluster)
    pool.nodes.add(cluster.nodes.get(name="gpu2"))
    bob = make.a_user("bob", role="viewer", on=pool)

    assert ages_of(bob, cluster_lines(bob, now=NOON), now=NOON)[1].reason == BLIND


def test_who_sees_a_pool_sees_that_its_telemetry_is_silent_and_not_why():
    cluster, other = make.a_cluster("prod"), make.a_cluster("other")
    pool = make.a_pool(cluster)
    make.a_node(cluster, pool=pool)
    make.a_node(other)
    make.a_source(cluster, state="silent", message="https://prometheus.internal refuses us.")
    make.a_source(other)

    bob = make.a_user("bob", role="viewer", on=pool)

    ages = ages_of(bob, cluster_lines(bob, now=NOON), now=NOON)
    found = [(age.name, age.at, age.is_late, age.reason) for age in ages]

    assert found[1:] == [("telemetry of prod", NOON, True, "")]
    assert "telemetry of prod" in page(visiting(bob), "/findings").text


def test_who_sees_a_pool_learns_nothing_of_exporters_in_others():
    cluster = make.a_cluster("prod")
    pool = make.a_pool(cluster)
    make.a_node(cluster)

    assert "telemetry of prod" not in page(visiting(make.a_user(role="viewer", on=pool)), "/findings").text


def test_since_when_nobody_asks_has_its_date_where_it_is_not_today(cluster, ada):
    make.a_source(cluster, answered_at=NOON - timedelta(days=3))

    assert "The source was not queried since 18 November 2026 12:00 UTC." in page(ada, "/findings").text


def as_shown(reply) -> str:
    """Without the spaces that `Page.text` puts between elements."""
    return " ".join(re.sub(r"<[^>]*>", "", reply.content.decode()).split())


def test_where_it_is_reads_without_a_space_before_the_comma(cluster, ada):
    node = make.a_node(cluster, "gpu-x", pool=make.a_pool(cluster, "h200"))
    finding = make.a_finding(cluster, node=node)
    make.a_finding(cluster, "node gpu-x", node=node, rule="y", state=FindingState.CONFIRMING, opened_at=None)

    chosen = as_shown(ada.get(f"/findings?finding={finding.pk}"))
    others = [
        as_shown(ada.get(path))
        for path in ("/findings?tab=confirming", f"/parts/nodes/{node.pk}/findings", f"/nodes/{node.pk}")
    ]

    assert "Wherenode gpu-x, prod, h200" in chosen
    assert all("node gpu-x, prod ·" in shown for shown in others)
    assert [shown for shown in (chosen, *others) if " ," in shown] == []


def test_what_a_cause_explains_that_one_may_not_see_stands_on_its_own(cluster, ada):
    pool = make.a_pool(cluster)
    node = make.a_node(cluster, pool=pool)
    cause = make.a_finding(cluster, "telemetry", rule="telemetry-silent", title="http://secret is silent.")
    child = make.a_finding(cluster, node=node, rule="exporter-silent", title="Its exporter says nothing.", parent=cause)
    bob = visiting(make.a_user(role="viewer", on=pool))

    seen, strip = page(bob, f"/findings?finding={child.pk}").text, page(bob, "/parts/findings/strip").text

    assert "Unacknowledged 1 All 1 Muted 0" in seen
    assert "secret" not in seen
    assert "isted under" not in seen
    assert "all: 1 open Its exporter says nothing." in strip
    assert "1 open finding Its exporter says nothing." in page(bob, f"/parts/pools/{pool.pk}/findings").text
    assert "Listed under its cause: http://secret is silent." in page(ada, f"/findings?finding={child.pk}").text


def test_what_is_listed_under_its_cause_is_not_said_to_be_nowhere(cluster, ada):
    nodes = [make.a_node(cluster) for _ in range(2)]
    cause = make.a_finding(cluster, node=nodes[0], rule="node-not-ready")
    make.a_finding(cluster, node=nodes[0], rule="pods-failing", parent=cause)
    own = make.a_finding(cluster, node=nodes[1], rule="pods-failing")

    shown = page(ada, f"/findings?finding={own.pk}").text
    rules = {one["rule"]: (one["open"], one["listed"]) for one in ada.get("/api/v1/rules").json()}

    assert "1 finding of this rule is listed under its cause." in shown
    assert "no other findings of this rule" not in shown
    assert ada.get(f"/api/v1/findings/{own.pk}").json()["alike_listed"] == 1
    assert (rules["pods-failing"], rules["node-not-ready"]) == ((1, 1), (1, 0))
    assert "1 under its cause" in page(ada, "/findings/rules").text
    assert "1 finding , and 1 listed under its cause" in page(ada, "/findings/rules/pods-failing").text


def test_what_is_over_goes_on_to_name_what_was_listed_under_it(cluster, ada):
    over = {"node": make.a_node(cluster), "resolved_at": NOON}
    cause = make.a_finding(cluster, rule="node-not-ready", **over)
    make.a_finding(cluster, rule="pods-failing", parent=cause, title="Pods fail.", **over)
    before = {"resolved_at": cause.since - timedelta(hours=1), "since": cause.since - timedelta(hours=2)}
    make.a_finding(cluster, rule="x", parent=cause, title="Long ago.", **over | before)

    told = ada.get(f"/api/v1/findings/{cause.pk}").json()

    assert "- Listed under it: Pods fail." in told["markdown"]
    assert "Long ago." not in told["markdown"]
    assert "Pods fail. resolved" in page(ada, f"/findings?tab=resolved&finding={cause.pk}").text
