import json
from copy import deepcopy
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from rollouts.evidence.exporting import evidence_of
from rollouts.evidence.verifying import NoEvidence, bytes_of, verify
from rollouts.steering.approving import approve, bundle_for, reject
from tests.make import NOON, a_user
from tests.rollouts.rows import a_driver_cluster, a_started_plan, answered, opened


def a_file() -> bytes:
    """Of a plan whose canary was approved, and whose second stage was rejected on what the canary had shown."""
    plan = a_started_plan(a_driver_cluster(), a_user(role="operator"))
    canary = opened(plan)
    approve(canary, actor=a_user("amy"), bundle_hash=bundle_for(canary).hash, because="Götz saw it.", now=NOON)
    answered(canary)
    rest = opened(plan, 1)
    reject(rest, actor=a_user("amos"), bundle_hash="", because="Not today.", now=NOON)
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


@settings(max_examples=400)
@given(data=st.data())
def test_one_altered_byte_is_found(file, data):
    at = data.draw(st.integers(0, len(file) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda other: other != file[at]))

    assert is_found(file[:at] + bytes([byte]) + file[at + 1 :])


@settings(max_examples=150)
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


@settings(max_examples=200)
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
    from edges.digests import digest
    from rollouts.evidence.verifying import hashes_of_parts

    content = json.loads(file)
    content["decisions"][0]["by"] = "mallory"
    content["audit"][2]["because"] = "Because."
    content["parts"] = hashes_of_parts(content)
    content["hash"] = digest({key: value for key, value in content.items() if key != "hash"})

    said = [str(flaw) for flaw in verify(bytes_of(content)).flaws]

    assert said == [
        "audit[2]: its content is not what was written",
        "decisions[0]: no entry of the audit chain says this decision",
    ]


def test_the_same_in_other_bytes_is_found(file):
    (flaw,) = verify(json.dumps(json.loads(file)).encode()).flaws

    assert str(flaw) == "line 1: it says the same in other bytes than it was written in"


@pytest.mark.parametrize(
    "rubbish", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 10**5, b'{"format": NaN}', b'{"a":1,"a":1}']
)
def test_what_is_no_evidence_is_said_to_be_none(rubbish: bytes):
    with pytest.raises(NoEvidence):
        verify(rubbish)


@pytest.mark.parametrize(
    "field", ["plan", "decisions", "answers", "audit", "passed_over", "parts", "hash"],
)  # fmt: skip
def test_rubbish_within_is_a_flaw_and_no_crash(file, field: str):
    for rubbish in (None, 3, "x", [3], {"x": 3}, [{}], [{"bundle": {"content": 3}}]):
        assert verify(bytes_of(json.loads(file) | {field: rubbish})).flaws


def test_the_command_needs_no_database_and_names_what_was_altered(file, tmp_path):
    path, out = tmp_path / "evidence.json", StringIO()
    path.write_bytes(file)
    call_command("verify_evidence", str(path), stdout=out)
    path.write_bytes(file.replace(b"Not today.", b"Not Today."))

    assert out.getvalue().startswith("It is as it was written: 2 decisions, 4 audit entries.\n")
    with pytest.raises(CommandError, match=r"decisions\[1\]: it is not what was written"):
        call_command("verify_evidence", str(path))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("verify_evidence", str(tmp_path / "none"))
