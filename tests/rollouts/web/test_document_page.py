import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from rollouts.commands.documents import write
from rollouts.evidence.verification import verify
from rollouts.models import Plan
from tests.make import a_draft, a_fleet, a_plan
from tests.pages import page
from tests.rollouts.bad_input import BOMB, REFUSED, SAID, a_fleet_in_tiers, as_text

TEXT = """\
cluster: {}
object: {{name: h200}}
to: 580.126.20
stages:
- {{name: Canary, kind: canary, count: 1}}
- {{name: Rest, kind: pool}}
"""


def paste(client, **given):
    return client.post("/plans/documents", given)


def seen_in(shown) -> str:
    return re.search(r'name="seen" value="(\w+)"', shown.content.decode())[1]


def test_the_first_answer_shows_what_it_would_do_and_the_second_drafts_it(ada):
    text = TEXT.format(a_fleet().name)

    shown = paste(ada, text=text)
    assert not Plan.objects.exists()
    done = paste(ada, text=text, seen=seen_in(shown))

    assert "would be drafted" in shown.content.decode()
    assert "wave 2" in shown.content.decode()
    assert done.headers["Location"] == f"/plans/{Plan.objects.get().pk}"


def test_what_is_wrong_is_said_by_field_and_the_text_is_kept(ada):
    reply = paste(ada, text="cluster: nowhere\ncolour: red")

    assert reply.status_code == 400
    said = reply.content.decode()
    assert "<code>colour</code>: Unknown field." in said
    assert "colour: red</textarea>" in said


def test_what_stands_against_it_names_its_field_there_and_in_the_preview_of_the_draft(ada):
    text = TEXT.format(a_fleet().name).replace("kind: pool", "kind: pool, selector: tier=none")
    says = "<code>stages[1].selector</code>: <b>Rest takes no node</b>"

    shown = paste(ada, text=text)
    drafted = paste(ada, text=text, seen=seen_in(shown))

    assert says in shown.content.decode()
    assert says in ada.get(f"/parts{drafted.headers['Location']}/preview").content.decode()


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_plan_is_refused_with_its_field(ada, what: str):
    given, field, words = REFUSED[what]

    reply = paste(ada, text=as_text(a_fleet_in_tiers(), **given))

    assert reply.status_code == 400
    assert re.search(rf"<code>{re.escape(field)}</code>: [^<]*{re.escape(words)}", reply.content.decode())
    assert not Plan.objects.exists()


@pytest.mark.parametrize("what", SAID)
def test_what_a_plan_could_not_do_is_said_with_its_field(ada, what: str):
    given, _, field, words = SAID[what]

    reply = paste(ada, text=as_text(a_fleet_in_tiers(), **given))

    assert re.search(rf"<code>{re.escape(field)}</code>: (<b>)?[^<]*{re.escape(words)}", reply.content.decode())
    assert not Plan.objects.exists()


def test_fifty_megabytes_and_an_anchor_bomb_are_refused_unread(ada):
    for content, words in ((b"a" * 50_000_000, "larger than 64 KiB"), (BOMB.encode(), "Aliases (*)")):
        reply = paste(ada, file=SimpleUploadedFile("plan.yaml", content))

        assert reply.status_code == 400
        assert words in reply.content.decode()


def test_a_file_counts_before_the_text(ada):
    content = TEXT.format(a_fleet().name).encode()
    shown = paste(ada, file=SimpleUploadedFile("plan.yaml", content), text="x")

    reply = paste(ada, file=SimpleUploadedFile("plan.yaml", content), text="x", seen=seen_in(shown))

    assert reply.status_code == 302
    assert Plan.objects.count() == 1


def test_what_was_written_after_the_look_is_shown_before_it_is_drafted(ada):
    text = TEXT.format(a_fleet().name)
    seen = seen_in(paste(ada, text=text))

    other = paste(ada, text=text.replace("580.126.20", "580.126.16"), seen=seen)

    assert (other.status_code, Plan.objects.count()) == (409, 0)
    assert (
        "The effect of the document has changed since you read it. Nothing was written. Read the effect again"
    ) in other.content.decode()
    paste(ada, text=text.replace("580.126.20", "580.126.16"), seen=seen_in(other))
    assert Plan.objects.get().to_version == "580.126.16"


@pytest.mark.nightly
def test_a_draft_that_another_document_changed_since_the_look_is_not_changed_unseen(ada):
    text = TEXT.format(a_fleet().name) + "title: New driver\n"
    paste(ada, text=text, seen=seen_in(paste(ada, text=text)))
    plan, mine = Plan.objects.get(), text.replace("count: 1", "count: 2")
    seen = seen_in(paste(ada, text=mine))
    theirs = text.replace("name: Rest", "name: Others")
    paste(ada, text=theirs, seen=seen_in(paste(ada, text=theirs)))

    late = paste(ada, text=mine, seen=seen)

    assert late.status_code == 409
    assert "Others" in late.content.decode()
    assert [stage.name for stage in plan.stages.forward()] == ["Canary", "Others"]


def test_a_draft_is_downloaded_and_its_change_shown_field_by_field(ada, bob, eve):
    plan = a_draft(author=ada.user)

    reply = bob.get(f"/plans/{plan.pk}/document")
    shown = paste(ada, text=reply.content.decode().replace("New driver", "Newer"))

    assert reply.content.decode() == write(plan)
    assert reply.headers["Content-Disposition"] == f'attachment; filename="plan-{plan.pk}.yaml"'
    assert f"would change plan {plan.pk}" in shown.content.decode()
    assert "<code>title</code>" in shown.content.decode()
    assert eve.get(f"/plans/{plan.pk}/document").status_code == 404


def test_who_may_not_draft_is_told_so(bob):
    reply = bob.get("/plans/documents")

    assert reply.status_code == 403
    assert "you need the role" in reply.content.decode()


def test_the_way_there(ada, bob):
    plan = a_draft(author=ada.user)

    assert "/plans/documents" in page(ada, "/plans").links
    assert f"/plans/{plan.pk}/document" in page(bob, f"/plans/{plan.pk}").links


def test_the_evidence_of_a_plan_is_downloaded_by_who_sees_it(bob, eve):
    plan = a_plan()

    reply = bob.get(f"/plans/{plan.pk}/evidence")

    assert verify(reply.content).flaws == []
    assert reply.headers["Content-Disposition"] == f'attachment; filename="plan-{plan.pk}-evidence.json"'
    assert f"/plans/{plan.pk}/evidence" in page(bob, f"/plans/{plan.pk}").links
    assert eve.get(f"/plans/{plan.pk}/evidence").status_code == 404


@pytest.mark.parametrize("place", ["key", "reason"])
def test_what_is_no_text_is_refused_and_the_page_still_shows(ada, place):
    gates = (
        {"headroom": {"advisory": True, "reason": "\ud800"}, "driver_version": {}}
        if place == "reason"
        else {"\ud800": {}}
    )
    stage = {"name": "Canary", "kind": "canary", "count": 1, "gates": gates}
    what = {"cluster": a_fleet().name, "object": {"name": "h200"}, "to": "580.126.20", "stages": [stage]}

    response = paste(ada, text=json.dumps(what))

    assert response.status_code == 400
