import json
from copy import deepcopy
from datetime import timedelta
from hashlib import sha256
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from edges.digests import digest
from rollouts.commands.plan_approvals import approve, bundle_for, reject
from rollouts.commands.plan_control import resume
from rollouts.commands.plan_drafts import edit
from rollouts.commands.plan_start import start
from rollouts.engine.decide.acts import MovePlan
from rollouts.engine.record import make_moves
from rollouts.evidence.export import evidence_of
from rollouts.evidence.file import NoEvidence, bytes_of, hashes_of_parts
from rollouts.evidence.verification import verify
from rollouts.lifecycle import PlanState
from tests.make import NOON, a_user
from tests.rollouts.rows import CANARY, REST, a_draft, a_driver_cluster, a_started_plan, answered, in_state, opened


def a_file() -> bytes:
    """Of a plan whose canary was approved, and whose second stage was rejected on what the canary had shown."""
    plan = a_started_plan(a_driver_cluster(), a_user(role="operator"))
    canary = opened(plan)
    approve(canary, actor=a_user("amy"), bundle_hash=bundle_for(canary).hash, reason="Götz saw it.", now=NOON)
    answered(canary)
    rest = opened(plan, 1)
    reject(rest, actor=a_user("amos"), bundle_hash="", reason="Not today.", now=NOON)
    plan.refresh_from_db()
    return evidence_of(plan)


@pytest.fixture(scope="module")
def file(django_db_setup, django_db_blocker) -> bytes:
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        written = a_file()
        transaction.set_rollback(True)
    return written


def test_what_was_written_is_verified(file):
    found = verify(file)

    assert found.flaws == []
    assert (found.decisions, found.entries) == (2, 4)
    assert found.last_hash == json.loads(file)["audit"][-1]["hash"]


@settings(max_examples=100)
@given(data=st.data())
def test_one_altered_byte_is_found(file, data):
    at = data.draw(st.integers(0, len(file) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda other: other != file[at]))

    assert is_found(file[:at] + bytes([byte]) + file[at + 1 :])


@settings(max_examples=50)
@given(data=st.data())
def test_bytes_put_in_or_left_out_are_found(file, data):
    at = data.draw(st.integers(0, len(file)))
    put_in = data.draw(st.binary(max_size=3))
    left_out = data.draw(st.integers(0 if put_in else 1, 40))
    altered = file[:at] + put_in + file[at + left_out :]

    assert altered == file or is_found(altered)


def is_found(altered: bytes) -> bool:
    try:
        return bool(verify(altered).flaws)
    except NoEvidence:
        return True


def places(content: Any, at: tuple = ()) -> list[tuple]:
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [*([at] if at else []), *(place for key, value in inside for place in places(value, (*at, key)))]


@settings(max_examples=50)
@given(
    data=st.data(), value=st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([]) | st.just({})
)
def test_any_altered_value_is_found_and_its_part_named(file, data, value):
    content = json.loads(file)
    place = data.draw(st.sampled_from(places(content)))
    altered = put(deepcopy(content), place, value)
    if bytes_of(altered) == file:
        return

    try:
        flaws = verify(bytes_of(altered)).flaws
    except NoEvidence:
        assert place == ("format",)
        return

    named = {flaw.field.partition(".")[0].partition("[")[0] for flaw in flaws}
    assert named & {str(place[0]), "hash"}
    if place[0] in {"plan", "decisions", "answers", "audit"}:
        assert str(place[0]) in named


def put(content: Any, place: tuple, value: Any) -> Any:
    inside = content
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return content


def test_who_makes_the_hash_of_the_whole_anew_is_found_all_the_same(file):
    content = json.loads(file)
    content["decisions"][0]["by"] = "mallory"
    content["audit"][2]["reason"] = "Because."

    said = [str(flaw) for flaw in verify(made_anew(content)).flaws]

    assert said == [
        "audit[2]: its content was changed after it was written",
        "decisions[0]: no entry of the audit chain contains this decision",
    ]


def first_is_twice(content) -> None:
    content["decisions"].append(content["decisions"][0])


def nobody_rejected(content) -> None:
    del content["decisions"][1]


def nobody_decided(content) -> None:
    content["decisions"] = []


def approved_twice_for_a_rejection(content) -> None:
    content["decisions"][1] = content["decisions"][0]


def somebody_else_wrote_it(content) -> None:
    content["plan"]["author"] = "mallory"


def somebody_else_changed_it(content) -> None:
    content["plan"]["last_editor"] = "mallory"


def sealed_at_another_time(content) -> None:
    content["plan"]["sealed_at"] = "2026-01-01T00:00:00.000000+00:00"


def never_started(content) -> None:
    content["plan"] |= {"sealed": {}, "content_hash": ""}


def another_answer(content) -> None:
    content["answers"][0]["answer"] = "fail"


def another_number(content) -> None:
    content["answers"][0]["evidence"][0]["value"] = 2


def no_answer(content) -> None:
    content["answers"] = []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (first_is_twice, "decisions[2]"), (nobody_rejected, "decisions"), (nobody_decided, "decisions"),
        (approved_twice_for_a_rejection, "decisions[1]"), (somebody_else_wrote_it, "plan.author"),
        (somebody_else_changed_it, "plan.last_editor"), (sealed_at_another_time, "plan.sealed_at"),
        (never_started, "plan.content_hash"), (another_answer, "answers[0]"), (another_number, "answers[0]"),
        (no_answer, "answers"),
    ],
)  # fmt: skip
def test_what_the_chain_says_cannot_be_altered_beside_it(file, change, where: str):
    content = json.loads(file)
    change(content)
    found = verify(made_anew(content))

    assert where in [flaw.field for flaw in found.flaws]
    assert found.last_hash == verify(file).last_hash


def test_what_the_chain_does_not_say_makes_another_file_at_least(file):
    content = json.loads(file)
    content["decisions"][1] |= {"void_at": content["decisions"][1]["at"], "void_reason": "She took it back."}
    found = verify(made_anew(content))

    assert found.flaws == []
    assert found.file_hash != verify(file).file_hash


@pytest.mark.django_db
def test_an_answer_that_a_move_rested_on_is_in_the_chain():
    plan = in_state(a_started_plan(a_driver_cluster(), a_user(role="operator")), "promoting")
    canary = opened(plan)
    answered(canary, since=NOON - timedelta(hours=1))
    plan.take_lease(owner="w", now=NOON)
    make_moves(plan, [canary], (MovePlan(PlanState.HALTED, "Enough."),), now=NOON)
    plan.refresh_from_db()
    content = json.loads(evidence_of(plan))

    assert verify(evidence_of(plan)).flaws == []
    another_answer(content)
    assert [str(flaw) for flaw in verify(made_anew(content)).flaws] == [
        "answers[0]: the audit chain has another gate result at that time"
    ]


@pytest.mark.django_db
def test_of_several_approvers_an_edit_and_a_resumed_rejection_all_is_as_it_was():
    ada = a_user(role="operator")
    plan = a_draft(a_driver_cluster(), ada)
    plan = edit(
        plan, title="Other", to_version=plan.to_version, stages=[CANARY, REST], expected_revision=1,
        actor=a_user("olga", role="operator"), now=NOON,
    )  # fmt: skip
    start(plan, actor=ada, reason="It is time.", expected_revision=2, now=NOON)
    canary = opened(plan)
    for name in ("amy", "amos"):
        approve(canary, actor=a_user(name), bundle_hash=bundle_for(canary).hash, reason="Seen.", now=NOON)
    answered(canary)
    reject(opened(plan, 1), actor=a_user("ann"), bundle_hash="", reason="Not today.", now=NOON)
    in_state(plan, "halted").stages.filter(index=1).update(state="halted")
    resume(plan, actor=ada, reason="It is another day.", now=NOON + timedelta(hours=1))
    later = answered(canary, at=NOON + timedelta(hours=1), since=NOON + timedelta(hours=1), answer="wait")
    reject(opened(plan, 1), actor=a_user("al"), bundle_hash="", reason="Nor now.", now=NOON + timedelta(hours=2))
    type(later).objects.filter(pk=later.pk).update(at=NOON + timedelta(hours=3), title="It goes on")
    plan.refresh_from_db()
    found = verify(evidence_of(plan))

    assert (plan.author, plan.last_editor) == (ada.username, "olga")
    assert (found.flaws, found.decisions) == ([], 4)
    assert plan.stages.get(index=1).approvals.filter(void_at__isnull=False).count() == 1


def made_anew(content: dict) -> bytes:
    content["parts"] = hashes_of_parts(content)
    content["hash"] = digest({key: value for key, value in content.items() if key != "hash"})
    return bytes_of(content)


def test_the_same_in_other_bytes_is_found(file):
    (flaw,) = verify(json.dumps(json.loads(file)).encode()).flaws

    assert str(flaw) == "line 1: it has the same content as written, but other bytes"


@pytest.mark.parametrize(
    "rubbish", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 10**5, b'{"format": NaN}', b'{"a":1,"a":1}']
)
def test_what_is_no_evidence_is_said_to_be_none(rubbish: bytes):
    with pytest.raises(NoEvidence):
        verify(rubbish)


@pytest.mark.parametrize(
    "field", ["plan", "decisions", "answers", "audit", "overrides", "parts", "hash"],
)  # fmt: skip
def test_rubbish_within_is_a_flaw_and_no_crash(file, field: str):
    for rubbish in (None, 3, "x", [3], {"x": 3}, [{}], [{"bundle": {"content": 3}}]):
        assert verify(bytes_of(json.loads(file) | {field: rubbish})).flaws


def test_the_command_needs_no_database_and_names_what_was_altered(file, tmp_path):
    path, out = tmp_path / "evidence.json", StringIO()
    path.write_bytes(file)
    call_command("verify_evidence", str(path), stdout=out)
    path.write_bytes(file.replace(b"Not today.", b"Not Today."))

    assert out.getvalue().endswith(f"The SHA-256 of the whole file is {sha256(file).hexdigest()}.\n")
    assert out.getvalue().startswith("The file is unchanged: 2 decisions, 4 audit entries.\n")
    with pytest.raises(CommandError, match=r"decisions\[1\]: it was changed after it was written"):
        call_command("verify_evidence", str(path))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("verify_evidence", str(tmp_path / "none"))
