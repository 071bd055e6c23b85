from django.urls import path

from rollouts.web import (
    approval_page,
    draft_page,
    freezes_page,
    plan_page,
    plans_page,
    steering,
    stopping,
    timeline,
)

urlpatterns = [
    path("plans", plans_page.plans, name="plans"),
    path("parts/plans", plans_page.plans_part, name="plans-part"),
    path("parts/plans/strip", plans_page.strip_part, name="plans-strip"),
    path("freezes", freezes_page.freezes, name="freezes"),
    path("freezes/new", freezes_page.new, name="new-freeze"),
    path("parts/freezes", freezes_page.freezes_part, name="freezes-part"),
    path("freezes/<int:freeze_id>/lifts", freezes_page.lift, name="lift-freeze"),
    path("stop", stopping.put_in_force, name="stop"),
    path("stop/lifts", stopping.lift, name="lift-stop"),
    path("parts/stop", stopping.banner_part, name="stop-banner"),
    path("plans/new", draft_page.new, name="draft"),
    path("plans/<int:plan_id>/edit", draft_page.edit, name="edit-plan"),
    path("plans/<int:plan_id>", plan_page.plan, name="plan"),
    path("parts/plans/<int:plan_id>", plan_page.plan_part, name="plan-part"),
    path("parts/plans/<int:plan_id>/history", plan_page.history_part, name="plan-history"),
    path("plans/<int:plan_id>/commands/<slug:verb>", steering.command, name="command"),
    path("targets/<int:target_id>/exclusions", steering.exclude, name="exclude"),
    path("stages/<int:stage_id>/approval", approval_page.approval, name="approval"),
    path("parts/stages/<int:stage_id>/approval", approval_page.live_part, name="approval-live"),
    path("parts/nodes/<int:node_id>/timeline", timeline.node_timeline, name="node-timeline"),
]
