"""What is asked of rows in Python and in SQL says the same of any rows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from django.apps import apps
from django.db.models import Manager, QuerySet
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.models import Bookmark, Gpu
from fleet.models.bookmark import BookmarkState
from health.gpus.faults import findings_of
from health.models import Finding, Mute
from maintenance.lifecycle import CaseState
from maintenance.models import NodeCase
from notifications.models import Channel
from notifications.models.channel import ChannelState
from operations.lifecycle import OperationState
from operations.models import Freeze, Operation
from rollouts.lifecycle import ExternalRolloutState, PlanState, TargetState
from rollouts.models import (
    Approval,
    ExternalRollout,
    GateOverride,
    Hold,
    LiveCheck,
    Plan,
    Rehearsal,
    Target,
)
from rollouts.models.target import Shown
from tests import make
from tests.make import NOON

AROUND = st.sampled_from([NOON + timedelta(microseconds=each) for each in (-1, 0, 1)])  # the moment itself included
PERHAPS = st.none() | AROUND
SOME = st.sampled_from(["", "a"])
# What a finding is about, with the name of its node to come, and the UUID of its board.
ABOUT = st.tuples(
    st.sampled_from(["GPU 0 of {}", "GPU 1 of {}, slice 2", "GPU GPU-a of {}", "GPU GPU-b of {}, slice 1"]),
    st.sampled_from(["", "GPU-a", "GPU-b", "GPU-z"]),
)


class Twins(NamedTuple):
    """`row`: columns that decide, drawn; `around`: what a row needs besides, from a plan's stage and a number."""

    of: Any  # the model
    row: dict[str, st.SearchStrategy]
    around: Callable[[Any, int], dict[str, Any]]
    in_sql: Callable[[Any], Any]
    in_python: Callable[[Any], bool]


def a_plan(stage: Any, number: int) -> dict[str, Any]:
    cluster, at = stage.plan.cluster, dict.fromkeys(("state_since", "created_at", "edited_at", "lease_until"), NOON)
    return {"cluster": cluster, "object_uid": f"u{number}", **at}


def a_hold(stage: Any, number: int) -> dict[str, Any]:
    return {"plan": stage.plan, "node_uid": f"u{number}", "node_name": "x", "wanted_since": NOON}


HELD = {"is_wanted": st.booleans(), "placed_at": PERHAPS, "ended_at": PERHAPS, "is_foreign": st.booleans()}
TWINS = {
    ("Freeze", "in_force"): Twins(
        Freeze,
        {"until": PERHAPS, "ended_at": PERHAPS},
        lambda _stage, _number: {"by": "ada", "at": NOON, "reason": "x"},
        lambda rows: rows.in_force(now=NOON),
        lambda row: row.is_in_force(now=NOON),
    ),
    ("Operation", "in_progress"): Twins(
        Operation,
        {"state": st.sampled_from(list(OperationState))},
        lambda stage, _: {
            "cluster": stage.plan.cluster, "steps": ["cordon"], "reason": "x", "asked_by": "ada", "asked_at": NOON,
            "state_since": NOON, "lease_until": NOON,
        },
        lambda rows: rows.in_progress(),
        lambda row: row.is_in_progress,
    ),
    ("NodeCase", "open"): Twins(
        NodeCase,
        {"state": st.sampled_from(list(CaseState))},
        lambda stage, number: {
            "cluster": stage.plan.cluster, "node_uid": f"u{number}", "state_since": NOON, "opened_at": NOON,
            "fault_at": NOON,
        },
        lambda rows: rows.open(),
        lambda row: row.is_open,
    ),
    ("Channel", "failing"): Twins(
        Channel,
        {
            "is_on": st.booleans(),
            "state": st.sampled_from(list(ChannelState)),
            "heartbeat_sentence": st.sampled_from(["", "503"]),
            "audit_sentence": st.sampled_from(["", "503"]),
        },
        lambda _stage, number: {
            "name": f"pager-{number}", "kind": "slack", "added_by": "ada", "added_at": NOON, "changed_at": NOON,
            "state_since": NOON, "lease_until": NOON,
        },
        lambda rows: rows.failing(),
        lambda row: row.is_failing,
    ),
    ("Mute", "in_force"): Twins(
        Mute,
        {"until": AROUND, "ended_at": PERHAPS},
        lambda stage, _: {"cluster": stage.plan.cluster, "rule": "x", "by": "ada", "at": NOON, "reason": "x"},
        lambda rows: rows.in_force(now=NOON),
        lambda row: row.is_in_force(now=NOON),
    ),
    ("GateOverride", "in_force"): Twins(
        GateOverride,
        {"until": AROUND, "acknowledged_at": PERHAPS},
        lambda stage, _: {"stage": stage, "gate": "soak", "said": "", "by": "ada", "at": NOON, "reason": "x"},
        lambda rows: rows.in_force(now=NOON),
        lambda row: row.is_in_force(now=NOON),
    ),
    ("Approval", "standing"): Twins(
        Approval,
        {"void_at": PERHAPS, "is_rejection": st.booleans()},
        lambda stage, number: {"stage": stage, "by": f"p{number}", "at": NOON, "bundle": {}, "bundle_hash": ""},
        lambda rows: rows.standing(),
        lambda row: row.is_standing,
    ),
    ("Hold", "blocking_changes"): Twins(
        Hold, HELD, a_hold, lambda rows: rows.blocking_changes(), lambda row: row.is_blocking_changes
    ),
    ("Hold", "older"): Twins(Hold, HELD, a_hold, lambda rows: rows.older(), lambda row: row.is_older),
    ("Rehearsal", "in_force"): Twins(
        Rehearsal,
        {"finished_at": PERHAPS, "trouble": SOME},
        lambda stage, number: {
            "plan": Plan.objects.create(**a_plan(stage, number)),
            "revision": 1, "seed": 1, "asked_at": NOON, "lease_until": NOON,
        },
        lambda rows: rows.in_force(),
        lambda row: row.is_in_force,
    ),
    ("ExternalRollout", "open"): Twins(
        ExternalRollout,
        {"state": st.sampled_from([state.value for state in ExternalRolloutState])},
        lambda stage, number: {
            "cluster": stage.plan.cluster, "object_uid": f"u{number}", "state_since": NOON, "lease_until": NOON,
        },
        lambda rows: rows.open(),
        lambda row: row.is_open,
    ),
    ("LiveCheck", "in_force"): Twins(
        LiveCheck,
        {"next_look_at": PERHAPS, "answered_at": PERHAPS},
        lambda stage, number: {
            "plan": Plan.objects.create(**a_plan(stage, number)),
            "asked_at": NOON, "revision": 1, "lease_until": NOON,
        },
        lambda rows: rows.in_force(),
        lambda row: row.is_in_force,
    ),
    ("Bookmark", "known"): Twins(
        Bookmark,
        {"state": st.sampled_from(BookmarkState.values), "listed_at": PERHAPS, "last_seen_at": PERHAPS},
        lambda stage, number: {"cluster": stage.plan.cluster, "kind": f"nodes.{number}", "state_since": NOON},
        lambda rows: Bookmark.objects.filter(
            pk__in=[row.pk for kind in set(rows.values_list("kind", flat=True)) for row in rows.known(kind)]
        ),
        lambda row: row.is_known,
    ),
    ("Plan", "under_way"): Twins(
        Plan,
        {"state": st.sampled_from([state.value for state in PlanState])},
        lambda stage, number: a_plan(stage, number),
        lambda rows: rows.under_way(),
        lambda row: row.is_under_way,
    ),
    ("Finding", "of_gpu"): Twins(
        Finding,
        {"subject": st.sampled_from(["GPU 0 of gpu-0", "GPU GPU-a of gpu-0, slice 1", "GPU operator", "node gpu-0"])},
        lambda stage, number: {
            "cluster": stage.plan.cluster, "node": stage.plan.cluster.nodes.first() if number % 2 else None,
            "rule": f"r{number}", "severity": "warning", "since": NOON, "confirmed_at": NOON, "updated_at": NOON,
        },
        lambda rows: rows.exclude(pk__in=rows.of_no_gpu().values("pk")),
        lambda row: row.is_of_gpu,
    ),
}  # fmt: skip


def pairs() -> set[tuple[str, str]]:
    """Model and method: what its rows can be asked for in SQL, and a row in Python, by the same name."""
    found = set()
    for model in apps.get_models():
        own = vars(type(model._default_manager.all()))
        inherited = {*dir(QuerySet), *dir(Manager)}
        for name in own.keys() - inherited:
            if hasattr(model, f"is_{name}") or hasattr(model, f"has_{name}"):
                found.add((model.__name__, name))
    return found


def test_every_predicate_that_is_written_twice_is_tried():
    assert pairs() == set(TWINS)


class TestTheDatabaseAndPythonAgree(TestCase):
    stage: Any
    root: Any

    @given(data=st.data(), which=st.sampled_from(sorted(TWINS)), number=st.integers(1, 5))
    def test_on_any_rows(self, data, which, number):
        stage, twins = self.stage, TWINS[which]
        drawn = [data.draw(st.fixed_dictionaries(twins.row)) for _ in range(number)]
        rows = [twins.of.objects.create(**twins.around(stage, at), **columns) for at, columns in enumerate(drawn)]

        found = {row.pk for row in twins.in_sql(twins.of.objects.filter(pk__in=[row.pk for row in rows]))}

        assert found == {row.pk for row in rows if twins.in_python(row)}

    @given(
        uuids=st.lists(st.sampled_from(["", "GPU-a", "GPU-b", "GPU-c"]), max_size=3), drawn=st.lists(ABOUT, max_size=4)
    )
    def test_on_which_gpu_a_finding_is_about(self, uuids, drawn):
        """Its own page, the lists of what is of a GPU, and the table of GPUs."""
        named = [uuid if uuid not in uuids[:at] else "" for at, uuid in enumerate(uuids)]
        cluster = self.stage.plan.cluster
        node = cluster.nodes.select_related("cluster").first()
        Gpu.objects.filter(node=node).delete()
        gpus = [Gpu.objects.create(node=node, index=at, uuid=uuid) for at, uuid in enumerate(named)]
        rows = [
            make.a_finding(cluster, about.format(node.name), node=node, rule=f"r{at}", gpu_uuid=uuid)
            for at, (about, uuid) in enumerate(drawn)
        ]

        by_key = {row.pk: row.gpu_among(dict(enumerate(named))) for row in rows}

        assert {gpu.index: {row.pk for row in Finding.objects.of_gpu(gpu)} for gpu in gpus} == {
            gpu.index: {key for key, index in by_key.items() if index == gpu.index} for gpu in gpus
        }
        for row in rows:
            Finding.objects.exclude(pk=row.pk).update(is_shadow=True)
            Finding.objects.filter(pk=row.pk).update(is_shadow=False)
            told = findings_of(self.root)
            assert [gpu.index for gpu in gpus if told.of(node.pk, gpu.index, gpu.uuid)] == [
                gpu.index for gpu in gpus if gpu.index == by_key[row.pk]
            ]

    @given(
        state=st.sampled_from([state.value for state in TargetState]),
        plan_state=st.sampled_from([state.value for state in PlanState]),
        put_back_at=PERHAPS,
        hold=st.none() | st.fixed_dictionaries({"is_wanted": st.booleans(), "placed_at": PERHAPS}),
        rolled_back=st.none() | st.sampled_from([state.value for state in TargetState]),
    )
    def test_on_what_went_back(self, state, plan_state, put_back_at, hold, rolled_back):
        target = self.stage.targets.first()
        Target.objects.filter(pk=target.pk).update(state=state)
        Plan.objects.filter(pk=self.stage.plan_id).update(state=plan_state, put_back_at=put_back_at)
        same = {"node_uid": target.node_uid, "node_name": target.node_name}
        Hold.objects.filter(plan=self.stage.plan_id, node_uid=target.node_uid).delete()
        if hold is not None:
            Hold.objects.create(plan=self.stage.plan, **same, wanted_since=NOON, **hold)
        if rolled_back is not None:
            stage = self.stage.plan.stages.create(
                index=9, name="Rollback", kind="rollback", state="promoting", state_since=NOON
            )
            stage.targets.create(position=0, **same, state=rolled_back, state_since=NOON)

        row = Target.objects.with_holds().select_related("stage__plan").get(pk=target.pk)

        assert Target.objects.back_on_old_version().filter(pk=target.pk).exists() == (row.shown_state == Shown.BACK)

    @classmethod
    def setUpTestData(cls):
        cls.stage = make.a_stage_to_approve()
        cls.root = make.a_user("root", role="admin")
