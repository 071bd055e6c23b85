"""A live check on the simulator's API server, in both driver modes: what bars a start leaves the cluster untouched."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from config.celery import app
from fleet.messages import wake
from kube import client
from people.models import AuditEntry
from rollouts.commands.live_checks import ask, ask_start
from rollouts.commands.plan_drafts import discard, edit, stages_of
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.live_checks.live_check_round import run_live_check
from rollouts.models import LiveCheck, Plan
from rollouts.preflight.live_checks.latest import live_on_page
from rollouts.tasks import sweep_rounds
from simulator.fleets.plan import Mode
from simulator.kinds import LEASE, NAMESPACE
from simulator.run import Simulation
from tests.rollouts.engine.conftest import start  # noqa: F401 (fixture)
from tests.rollouts.engine.ground import Ground, a_ground

pytestmark = [pytest.mark.rounds, pytest.mark.django_db]

MODES = [Mode.NVIDIA_DRIVER, Mode.CLUSTER_POLICY]
DENIED = "admission webhook “policy.example.com” denied the request: not today."


class Checking:
    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.plan = ground.draft()

    @property
    def now(self):
        return self.ground.clock()

    def start(self, **given: Any) -> "Checking":
        """As somebody presses it: the clock is past the time in which it is asked again."""
        revision = given.pop("expected_revision", self.plan.revision)
        ask_start(
            self.plan, actor=self.ground.ada, reason="It is time.", expected_revision=revision, now=self.now, **given
        )
        return self

    def ask(self) -> "Checking":
        ask(self.plan, actor=self.ground.ada, now=self.now)
        return self

    def round(self, *, after_s: float = 9) -> "Checking":
        self.ground.clock.move(seconds=after_s)
        run_live_check(self.row.pk, owner="worker-1", clock=self.ground.clock)
        self.plan.refresh_from_db()
        return self

    @property
    def row(self) -> LiveCheck:
        return LiveCheck.objects.get(plan=self.plan)

    def codes(self) -> dict[str, str]:
        shown = live_on_page(self.plan)
        assert shown
        return {answer.check.code: answer.result.value for answer in shown.answers}

    def written(self) -> list[str]:
        """Of ours, what an API server would have kept."""
        client.server_version(self.ground.connection)
        entries = self.ground.simulation.log.since(0)
        writes = [one for one in entries if one["method"] != "GET" and "dryRun=All" not in one["query"]]
        return [f"{one['method']} {one['path']}" for one in writes if "accessreviews" not in one["path"]]

    def tried(self) -> list[str]:
        client.server_version(self.ground.connection)
        entries = self.ground.simulation.log.since(0)
        return [one["path"] for one in entries if "dryRun=All" in one["query"] and one["code"] == 200]

    def is_untouched(self) -> bool:
        return self.written() == [] and self.ground.held() == set() and self.ground.version() == self.plan.from_version


@pytest.fixture(params=MODES, ids=["driver-object", "policy"])
def checking(
    request: pytest.FixtureRequest,
    db: None,
    start: Callable[..., Simulation],  # noqa: F811
) -> Iterator[Checking]:
    simulation = start()
    ground = a_ground(simulation, request.param)
    yield Checking(ground)
    ground.connection.close()
    simulation.stop()


@pytest.fixture
def one(db: None, start: Callable[..., Simulation]) -> Iterator[Checking]:  # noqa: F811
    simulation = start()
    ground = a_ground(simulation)
    yield Checking(ground)
    ground.connection.close()
    simulation.stop()


def test_where_all_is_well_it_starts_and_the_bundle_has_what_was_said(checking: Checking):
    before = checking.ground.store.version  # goes up with whatever is stored, and each watch hears of that

    checking.start().round()

    assert checking.plan.state == "holding", checking.plan.waiting_for
    assert checking.is_untouched()
    assert len(checking.tried()) == 3  # the object, and the first node of either stage
    assert checking.ground.store.version == before
    said = checking.plan.sealed["live"]["answers"]
    assert {one["result"] for one in said} == {"passed"}
    assert {one["code"] for one in said} >= {"live-rights", "live-version", "live-hold", "live-object"}
    assert checking.plan.templates["spec"]
    assert not checking.row.is_in_force


def test_a_namespace_that_is_missing_is_found_before_anything_is_touched(checking: Checking):
    checking.ground.store.delete(NAMESPACE, "quarterdeck")

    checking.start().round()

    assert checking.plan.state == "draft"
    assert checking.codes()["live-namespace"] == "barred"
    assert checking.plan.waiting_for.startswith("Not started: north has no namespace quarterdeck")
    assert checking.is_untouched()
    assert AuditEntry.objects.filter(subject=checking.plan.mark, verb="start-refused").count() == 1


def test_what_was_mended_is_started_by_the_next_try(one: Checking):
    one.ground.store.delete(NAMESPACE, "quarterdeck")
    one.start(key="k").round()
    one.ground.store.create(NAMESPACE, {"metadata": {"name": "quarterdeck"}})

    one.start(key="k").round()

    assert one.plan.state == "holding"
    assert one.plan.waiting_for == ""


def test_a_verb_that_is_forbidden_is_named(checking: Checking, monkeypatch: pytest.MonkeyPatch):
    forbid(monkeypatch, "patch", "nodes")

    checking.start().round()

    assert checking.plan.state == "draft"
    assert "It may not patch nodes." in checking.plan.waiting_for
    assert checking.is_untouched()


def test_what_admission_refuses_is_found(checking: Checking, monkeypatch: pytest.MonkeyPatch):
    refuse(monkeypatch, client.Forbidden(DENIED))

    checking.start().round()

    assert checking.plan.state == "draft"
    assert DENIED in checking.plan.waiting_for
    assert checking.codes()["live-version"] == "barred"
    assert checking.is_untouched()


@pytest.mark.nightly
def test_a_webhook_that_takes_no_dry_run_gives_way_to_a_reason(one: Checking, monkeypatch: pytest.MonkeyPatch):
    refuse(monkeypatch, client.Refused(f'admission webhook "a.example.com" {client.NO_DRY_RUN}'))

    one.start().round()
    assert one.plan.state == "draft"
    one.start(override_reason="It lets us: we asked its owner.").round()

    assert one.plan.state == "holding"
    assert one.plan.sealed["despite"]["reason"] == "It lets us: we asked its owner."
    assert [one["code"] for one in one.plan.sealed["despite"]["checks"]] == ["live-unanswered"]


def test_an_api_server_that_is_silent_starts_nothing(checking: Checking, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    def silent(*_: object) -> str:
        asked.append(1)
        raise client.Unreachable("The API server did not answer in time.")

    monkeypatch.setattr(client, "kube_system_uid", silent)

    checking.start().round(after_s=1)
    assert checking.row.is_in_force  # it may only be away for a moment
    checking.round()

    assert len(asked) == 2
    assert checking.plan.state == "draft"
    assert "does not answer. The API server did not answer in time." in checking.plan.waiting_for
    assert checking.codes() == {"live-silent": "unanswered"}
    assert checking.is_untouched()


def test_an_api_server_that_falls_silent_is_asked_no_more(one: Checking, monkeypatch: pytest.MonkeyPatch):
    def silent(*_: object) -> bool:
        raise client.Unreachable("The API server did not answer in time.")

    monkeypatch.setattr(client, "is_access_allowed", silent)

    one.ask().round()

    assert one.codes()["live-unanswered"] == "unanswered"
    assert "live-rights" not in one.codes()
    assert one.tried() == []


def test_another_cluster_is_asked_nothing_more(one: Checking):
    type(one.ground.cluster).objects.update(uid="another")

    one.plan.refresh_from_db()
    one.start().round()

    assert one.plan.state == "draft"
    assert one.codes() == {"live-cluster": "barred"}
    assert one.is_untouched()


def test_an_object_that_was_changed_since_it_was_seen_is_found(one: Checking):
    one.ground.change_driver(repository="registry.example.com/nvidia")

    one.start().round()

    assert one.plan.state == "draft"
    assert "changed after the preview." in one.plan.waiting_for
    assert one.is_untouched()


def test_another_quarterdeck_is_found(one: Checking):
    spec = client.lease_spec(holder="another", seconds=60, acquired_at=one.now, now=one.now, transitions=1)
    one.ground.store.create(LEASE, {"metadata": {"name": "quarterdeck"}, "spec": spec}, "quarterdeck")

    one.start().round()

    assert one.codes()["live-lease"] == "barred"
    assert "Another Quarterdeck (another) drives north" in one.plan.waiting_for


def test_a_check_alone_starts_nothing(one: Checking):
    one.ask().round()

    assert one.plan.state == "draft"
    assert set(one.codes().values()) == {"passed"}
    assert one.is_untouched()


def test_a_start_that_no_worker_took_in_time_is_not_made(one: Checking):
    one.start().round(after_s=121)

    assert one.plan.state == "draft"
    assert "No worker began within 2 min," in one.plan.waiting_for


def test_a_draft_that_was_edited_meanwhile_is_not_started(one: Checking):
    one.start()
    given = {"title": "Another", "to_version": one.plan.to_version, "stages": stages_of(one.plan)}
    edit(one.plan, expected_revision=1, actor=one.ground.ada, now=one.now, **given)

    one.round()

    assert one.plan.state == "draft"
    assert "The draft was edited since." in one.plan.waiting_for


def test_a_draft_that_was_discarded_meanwhile_stays_so(one: Checking):
    one.start()
    discard(one.plan, actor=one.ground.ada, reason="Not needed.", now=one.now)

    one.round()

    assert one.plan.state == "discarded"
    assert one.tried() == []


def test_whoever_lost_the_right_meanwhile_starts_nothing(one: Checking):
    one.start()
    one.ground.ada.bindings.all().delete()

    one.round()

    assert one.plan.state == "draft"
    assert "you need the role" in one.plan.waiting_for


def test_a_worker_that_slept_through_its_turn_starts_nothing(one: Checking, monkeypatch: pytest.MonkeyPatch):
    """The guarded write that it loses: another worker has told people meanwhile."""
    one.start()

    def sleeps(*_: object) -> str:
        LiveCheck.objects.update(epoch=99)
        return one.ground.cluster.uid

    monkeypatch.setattr(client, "kube_system_uid", sleeps)
    one.round()

    assert one.plan.state == "draft"
    assert one.row.answered_at is None
    assert "The start is requested" in one.plan.waiting_for


def test_a_worker_knows_what_is_queued(one: Checking, monkeypatch: pytest.MonkeyPatch):
    queued: list[str] = []
    monkeypatch.setattr(wake, "queue", lambda name, **_: queued.append(name))

    one.ask()
    sweep_rounds()

    assert queued == ["rollouts.tasks.run_leased"] * 2
    assert set(queued) <= set(app.tasks)


def test_two_workers_at_a_time_are_one(one: Checking):
    one.ask()
    first, second = one.row, one.row

    assert first.take_lease(owner="a", now=one.now)
    assert not second.take_lease(owner="b", now=one.now)


def test_the_same_key_is_the_same_start_and_another_one_waits(one: Checking):
    one.start(key="k").start(key="k")

    with pytest.raises(Refusal, match="ada requested the start at"):
        one.start(key="other")
    one.round().start(key="k")

    assert Plan.objects.get(pk=one.plan.pk).state == "holding"
    assert one.plan.commands.filter(verb="start").count() == 1


def test_a_draft_that_is_not_what_was_seen_is_not_asked_about(one: Checking):
    with pytest.raises(OutOfDate):
        one.start(expected_revision=7)

    assert not LiveCheck.objects.in_force().exists()


def test_who_asks_in_the_same_moment_as_another_loses(one: Checking, monkeypatch: pytest.MonkeyPatch):
    one.ask().round()
    row = one.row
    assert row.ask(now=one.now, asked_by="bob", revision=1, is_start=False)

    assert not row.ask(now=one.now, asked_by="ada", revision=1, is_start=False)


def test_only_a_draft_of_a_cluster_that_may_be_changed_is_asked_about(one: Checking):
    type(one.ground.cluster).objects.update(mode="observe-only")
    one.plan.cluster.refresh_from_db()

    with pytest.raises(Refusal, match="its mode is observe-only"):
        one.ask()


@pytest.mark.parametrize("is_start", [True, False])
def test_a_cluster_that_may_not_be_changed_any_more_is_sent_nothing(one: Checking, is_start: bool):
    """Somebody takes the right away between the question and the round: not even a dry run is tried."""
    one.start() if is_start else one.ask()
    type(one.ground.cluster).objects.update(mode="observe-only")

    one.round()

    assert "its mode is observe-only. It writes nothing there." in one.row.outcome
    assert one.row.answered_at is None
    assert one.tried() == []
    assert one.written() == []


@pytest.mark.nightly
def test_a_plan_that_lets_nodes_go_is_asked_again_of_those_still_to_go(one: Checking):
    """Z42: what an approver reads of the cluster is as old as the start, unless somebody asks again."""
    one.start().round()
    one.ground.plan = one.plan
    one.ground.rounds(6)
    one.plan.refresh_from_db()
    assert one.plan.state == "promoting"
    before, held = one.written(), one.ground.held()

    one.ask().round()

    assert set(one.codes().values()) == {"passed"}
    assert "live-version" not in one.codes()
    assert (one.written(), one.ground.held()) == (before, held)
    assert one.row.answered_at == one.now


def forbid(monkeypatch: pytest.MonkeyPatch, verb: str, plural: str) -> None:
    asks = client.is_access_allowed

    def may(connection: client.Connection, access: client.AccessAsked) -> Any:
        told = asks(connection, access)
        is_it = (access.verb, access.resource.plural) == (verb, plural)
        return type(told)(allowed=False) if is_it else told

    monkeypatch.setattr(client, "is_access_allowed", may)


def refuse(monkeypatch: pytest.MonkeyPatch, refusal: client.ClusterError) -> None:
    def no(*_: object, is_dry_run: bool) -> None:
        assert is_dry_run
        raise refusal

    monkeypatch.setattr(client, "patch_driver_object", no)
