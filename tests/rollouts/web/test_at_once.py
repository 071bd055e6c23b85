"""How many nodes of a stage may be down at once: one number for its preview, its card, and how long it takes."""

import pytest

from fleet.models import DriverObject, Node
from operations.models import DomainBudget
from rollouts.commands.plan_start import start
from rollouts.commands.preview import StagePreview, preview
from rollouts.commands.remaining_time import expected
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import Plan, Stage, StageKind
from rollouts.queries.plan_view import plan_on_page
from tests.make import NOON, a_user
from tests.pages import page, visiting
from tests.rollouts.rows import CANARY, GATES, POLICY, a_draft, a_driver_cluster, in_state

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
WIDE = (CANARY, StageDraft("Rest", StageKind.POOL, gate_options=GATES, max_unavailable=4))


def a_wide_draft(owner, *, zones: int = 0, **policy: object) -> Plan:
    """Its second stage takes eight nodes. `zones`: that may each have one node out."""
    cluster = a_driver_cluster(nodes=9)
    allowed = {"maxParallelUpgrades": 8, "maxUnavailable": "100%"} | policy
    DriverObject.objects.filter(kind="ClusterPolicy").update(upgrade_policy=POLICY | allowed)
    if zones:
        DomainBudget.objects.create(cluster=cluster, kind="zone", max_unavailable=1, by="root", at=NOON)
        for number, node in enumerate(Node.objects.order_by("name")):
            Node.objects.filter(pk=node.pk).update(zone=f"zone-{number % zones}")
    return a_draft(cluster, owner, stages=WIDE)


def previewed(plan: Plan) -> StagePreview:
    return preview(plan, now=NOON).stages[1]


def card(plan: Plan) -> str:
    """What the page of the plan says of its second stage once it is under way."""
    start(plan, actor=a_user("starter", role="operator"), reason="x", expected_revision=1, now=NOON)
    in_state(plan, "promoting")
    Stage.objects.filter(plan=plan, index=0).update(state="passed")
    Stage.objects.filter(plan=plan, index=1).update(state="promoting")
    return page(visiting(a_user(role="viewer")), f"/plans/{plan.pk}").text


@pytest.mark.parametrize(
    ("given", "nodes", "reason"),
    [
        ({}, 4, "The stage allows 4."),
        ({"maxParallelUpgrades": 3}, 3, "The operator upgrades 3 at once."),
        ({"maxParallelUpgrades": 0}, 4, "The stage allows 4."),
        ({"maxUnavailable": "25%"}, 3, "The operator allows 3 unavailable nodes."),
        ({"maxUnavailable": 1}, 1, "The operator allows 1 unavailable node."),
        ({"zones": 2}, 2, "The stage allows 4, and its failure domains 2 at once."),
    ],
)
def test_the_preview_and_the_card_say_the_least_that_stage_operator_and_domains_allow(owner, given, nodes, reason):
    plan = a_wide_draft(owner, **given)

    told = previewed(plan)

    assert (told.at_once, max(map(len, told.by_wave))) == (nodes, nodes)
    assert told.waves_reason.startswith(reason)
    if given.get("maxParallelUpgrades") != 0:  # which bars the start
        shown = card(plan)
        assert f"at most {nodes} down at once" in shown
        assert "at most 4 down at once" not in shown or nodes == 4


def test_what_is_left_is_reckoned_with_the_same_number(owner):
    plan = a_wide_draft(owner, zones=2)
    card(plan)

    plan.refresh_from_db()
    left = expected(plan, plan_on_page(plan, now=NOON), now=NOON)

    assert left is not None
    assert left.sentence.startswith("About 40 min: 4 waves of 8 min")


def test_a_stage_that_is_over_says_nothing_of_it(owner):
    plan = a_wide_draft(owner)
    card(plan)
    Stage.objects.filter(plan=plan).update(state="abandoned")
    Plan.objects.filter(pk=plan.pk).update(state="aborted")

    assert "down at once" not in page(visiting(a_user(role="viewer")), f"/plans/{plan.pk}").text
