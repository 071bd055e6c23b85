from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from people.models import AuditEntry
from people.models.audit_entry import broken_links
from tests.make import NOON

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
DECISIONS = st.lists(
    st.tuples(st.sampled_from(["plan:1", "plan:2"]), TEXT, st.dictionaries(TEXT, JSON, max_size=3)),
    min_size=1,
    max_size=6,
)
FORGERIES = {
    "actor": lambda entry: entry.actor + "x",
    "reason": lambda entry: entry.reason + "x",
    "verb": lambda entry: entry.verb + "x",
    "at": lambda entry: entry.at + timedelta(microseconds=1),
    "evidence": lambda entry: {**entry.evidence, "forged": 1},
    "previous_hash": lambda _: "f" * 64,
    "hash": lambda _: "f" * 64,
}


def record(decisions) -> list[AuditEntry]:
    return [
        AuditEntry.record(subject, verb="halt", actor="ada", reason=reason, evidence=evidence, now=NOON)
        for subject, reason, evidence in decisions
    ]


def broken() -> set[int]:
    return {entry.pk for entry, _ in broken_links(AuditEntry.objects.all())}


class TestTampering(TestCase):
    @settings(max_examples=25)
    @given(DECISIONS)
    @example([("plan:1", "", {"a": [1e16, 1.5e17, 1e23, -1e300, -0.0, 1e-7, 5e-324, 2**60 + 1, 10**400]})])
    def test_what_was_written_holds(self, decisions):
        record(decisions)

        assert broken() == set()

    @settings(max_examples=25)
    @given(DECISIONS, st.data())
    def test_a_changed_entry_is_found(self, decisions, data):
        entry = data.draw(st.sampled_from(record(decisions)))
        field = data.draw(st.sampled_from(sorted(FORGERIES)))

        AuditEntry.objects.filter(pk=entry.pk).update(**{field: FORGERIES[field](entry)})

        assert entry.pk in broken()

    @settings(max_examples=25)
    @given(DECISIONS, st.data())
    def test_a_removed_entry_is_missed_unless_it_was_the_last(self, decisions, data):
        written = record(decisions)
        gone = data.draw(st.sampled_from(written))
        after = [each for each in written if each.subject == gone.subject and each.number > gone.number]

        gone.delete()

        assert bool(broken()) == bool(after)

    @settings(max_examples=25)
    @given(DECISIONS)
    def test_a_forged_entry_with_a_right_hash_breaks_the_one_after(self, decisions):
        first, *_ = record([decisions[0], decisions[0], *decisions])
        first.actor = "eve"
        first.hash = first.computed_hash()
        first.save()

        assert broken()


@pytest.mark.django_db
def test_two_entries_never_share_a_number():
    (entry,) = record([("plan:1", "", {})])
    entry.pk = None

    with pytest.raises(IntegrityError), transaction.atomic():
        entry.save(force_insert=True)


@pytest.mark.django_db
def test_verify_audit_names_what_was_changed():
    record([("plan:1", "", {}), ("plan:1", "", {})])
    AuditEntry.objects.filter(number=2).update(actor="eve")
    said = StringIO()

    with pytest.raises(CommandError, match="Altered audit entries: 1"):
        call_command("verify_audit", stderr=said)

    assert said.getvalue() == "plan:1 #2: its content was changed\n"
