"""The gates of new plans of a pool: seen before they change, put back, and lost by whoever read older ones."""

import pytest

from fleet.models import Pool
from fleet.pools.changes import delete_pool, going_with
from people.models import AuditEntry
from people.rights import NotAllowed
from rollouts.commands.plan_drafts import suggest_stages
from rollouts.commands.pool_gates import change_gates, mark_of, preview_gates, with_gate
from rollouts.commands.refusals import BadPlan, OutOfDate
from rollouts.models import PoolGates
from tests import make
from tests.make import NOON
from tests.pages import page, visiting
from tests.rollouts.backtest.story import a_halted_plan, an_xid
from tests.rollouts.rows import a_driver_cluster

pytestmark = pytest.mark.django_db
XID = {"xid": {"severity": "warning"}}
NVBANDWIDTH = {"test_job": {"template": "vectoradd"}}


@pytest.fixture
def pool():
    cluster = a_driver_cluster()
    made = make.a_pool(cluster, "h100", selector="a=b")
    made.nodes.set(cluster.nodes.all())
    return made


@pytest.fixture
def root():
    return make.a_user("root", role="admin")


def changed(pool, options, actor, *, seen: str | None = None, reason: str = "Learned from plan 7."):
    row = PoolGates.objects.filter(pool=pool).first()
    now_mark = mark_of(row.options if row else {})
    return change_gates(pool, options, seen=now_mark if seen is None else seen, actor=actor, reason=reason, now=NOON)


def test_the_preview_shows_the_lines_that_a_new_stage_gains(pool):
    shown = preview_gates(pool, XID)

    assert [line for line in shown.diff if line[0] in "+-"] == ["+ xid:", "+   severity: warning"]
    assert shown.is_change
    assert not PoolGates.objects.exists()


def test_new_stages_of_the_pool_and_of_no_pool_have_its_gates(pool, root):
    other = make.a_pool(pool.cluster, "l40s", selector="c=d")
    changed(pool, XID | NVBANDWIDTH, root)

    canary, own = suggest_stages(pool.cluster.driver_objects.get(kind="NVIDIADriver"))

    assert own.pool_id == pool.pk
    for stage in (canary, own):
        assert stage.gate_options["xid"] == XID["xid"]
        assert stage.gate_options["test_job"] == NVBANDWIDTH["test_job"]
        assert "driver_version" in stage.gate_options
    assert preview_gates(other, {}).diff == preview_gates(other, {}).diff
    assert all("xid" not in line for line in preview_gates(other, {}).diff)


def test_a_change_is_in_the_audit_and_can_be_put_back(pool, root):
    changed(pool, XID, root)
    row = changed(pool, with_gate(pool, "ecc", {}), root)
    entry = AuditEntry.objects.filter(subject=f"pool:{pool.pk}").order_by("-number").first()

    assert (entry.verb, entry.actor, entry.reason) == ("change-gates", "root", "Learned from plan 7.")
    assert "ecc" in entry.evidence["after"]["gates"]
    assert changed(pool, row.previous, root).options == XID


def test_a_write_on_gates_that_somebody_changed_loses(pool, root):
    seen = mark_of({})
    changed(pool, XID, root)

    with pytest.raises(OutOfDate):
        changed(pool, {}, root, seen=seen)
    assert PoolGates.objects.get().options == XID


def test_gates_end_with_their_pool_in_preview_and_audit(pool, root):
    changed(pool, XID, root)

    told = going_with(pool, now=NOON)
    key = pool.pk
    delete_pool(pool, actor="root", now=NOON)
    entry = AuditEntry.objects.filter(subject=f"pool:{key}", verb="change-gates").order_by("-number").first()

    assert told == ["Its gates of new plans are removed: xid."]
    assert "xid" in entry.evidence["before"]["gates"]
    with pytest.raises(OutOfDate, match="deleted"):
        changed(Pool(pk=key, cluster=pool.cluster, name=pool.name), XID, root)


def test_a_gate_that_cannot_be_read_a_blank_reason_and_a_viewer_change_nothing(pool, root):
    with pytest.raises(BadPlan, match="has no option"):
        changed(pool, {"xid": {"never": 1}}, root)
    with pytest.raises(BadPlan, match="Give a reason"):
        changed(pool, XID, root, reason=" ")
    with pytest.raises(NotAllowed):
        changed(pool, XID, make.a_user("oli", role="operator"))
    assert not PoolGates.objects.exists()


def test_rest_and_page_preview_and_change_them(pool, root):
    there = visiting(root)
    place = f"/api/v1/pools/{pool.pk}/gates"
    mark = there.get(place).json()["mark"]
    body = {"gates": XID, "was": mark, "reason": "As plan 7."}

    assert (
        "+ xid:"
        in there.post(f"/api/v1/pools/{pool.pk}/gate-previews", {"gates": XID}, "application/json").json()["diff"]
    )
    told = there.put(place, body, "application/json").json()
    assert (told["gates"], told["default"]["xid"], told["previous"]) == (XID, XID["xid"], {})
    assert there.put(place, body, "application/json").status_code == 409

    assert "+ ecc: {}" in page(there, f"/pools/{pool.pk}/gates?add=ecc").text
    seen = told["mark"]
    answer = there.post(f"/pools/{pool.pk}/gates", {"text": "ecc: {}", "seen": seen, "reason": "Less."})
    assert answer.status_code == 302
    assert PoolGates.objects.get().options == {"ecc": {}}
    assert "+ xid:" in page(there, f"/pools/{pool.pk}/gates?undo=1").text
    assert there.post(f"/pools/{pool.pk}/gates", {"text": "xid: {}", "seen": seen, "reason": "x"}).status_code == 409
    assert there.post(f"/pools/{pool.pk}/gates", {"text": "xid: [", "seen": ""}).status_code == 400


def test_the_review_of_a_plan_offers_a_gate_for_all_plans_of_its_pools(root):
    plan = a_halted_plan()
    an_xid(plan, severity="warning")
    pool = make.a_pool(plan.cluster, "h100", selector="a=b")
    pool.nodes.set(plan.cluster.nodes.all())
    make.a_pool(plan.cluster, "empty", selector="a=b")

    seen = page(visiting(root), f"/parts/plans/{plan.pk}/gate-review").text

    assert "Add to new plans of h100" in seen
    assert "Add to new plans of empty" not in seen
