from django.urls import path

from rollouts.api.approvals import AwaitedList, GivenList, StageApprovals
from rollouts.api.break_glass import Acknowledgements, StageOverrides
from rollouts.api.commands import VERB_VIEWS, Exclusions, Retries
from rollouts.api.documents import DocumentOfPlan, PlanDocuments, PlanEvidence
from rollouts.api.external_rollouts import ExternalRolloutDetail, ExternalRolloutList, ExternalRolloutNodes
from rollouts.api.forecasts import PlanForecast
from rollouts.api.freezes import FreezeDetail, FreezeLifts, FreezeList, FreezePreviews, Stop, StopLifts
from rollouts.api.gate_reviews import GateAdditions, GateReview
from rollouts.api.image_pulls import ImagePulls
from rollouts.api.ledger import DisruptionList, DomainBudgets
from rollouts.api.live_checks import LiveChecks
from rollouts.api.plans import PlanDetail, PlanEventList, PlanList, PlanPreview, SuggestedStages
from rollouts.api.pool_gates import PoolGatesDetail, PoolGatesPreviews
from rollouts.api.rehearsals import Rehearsals
from rollouts.api.stages import StageBundle, StageChecks, StageDetail, StageList, StageTestJobs
from rollouts.api.test_results import NodeTestResults
from rollouts.api.windows import WindowDetail, WindowList, WindowPreviews, WindowRemovals
from rollouts.verbs import VERBS

urlpatterns = [
    path("approvals", AwaitedList.as_view()),
    path("approvals/given", GivenList.as_view()),
    path("break-glass/<int:override_id>/acknowledgements", Acknowledgements.as_view()),
    path("clusters/<int:cluster_id>/domain-budgets", DomainBudgets.as_view()),
    path("disruptions", DisruptionList.as_view()),
    path("driver-objects/<int:driver_object_id>/suggested-stages", SuggestedStages.as_view()),
    path("external-rollouts", ExternalRolloutList.as_view()),
    path("external-rollouts/<int:rollout_id>", ExternalRolloutDetail.as_view()),
    path("external-rollouts/<int:rollout_id>/nodes", ExternalRolloutNodes.as_view()),
    path("freezes", FreezeList.as_view()),
    path("freezes/<int:freeze_id>", FreezeDetail.as_view()),
    path("freezes/<int:freeze_id>/lifts", FreezeLifts.as_view()),
    path("freeze-previews", FreezePreviews.as_view()),
    path("nodes/<int:node_id>/test-results", NodeTestResults.as_view()),
    path("plan-documents", PlanDocuments.as_view()),
    path("plans", PlanList.as_view()),
    path("plans/<int:plan_id>", PlanDetail.as_view()),
    path("plans/<int:plan_id>/document", DocumentOfPlan.as_view()),
    path("plans/<int:plan_id>/evidence", PlanEvidence.as_view()),
    path("plans/<int:plan_id>/events", PlanEventList.as_view()),
    path("plans/<int:plan_id>/forecast", PlanForecast.as_view()),
    path("plans/<int:plan_id>/gate-additions", GateAdditions.as_view()),
    path("plans/<int:plan_id>/gate-review", GateReview.as_view()),
    path("plans/<int:plan_id>/image-pulls", ImagePulls.as_view()),
    path("plans/<int:plan_id>/live-checks", LiveChecks.as_view()),
    path("plans/<int:plan_id>/preview", PlanPreview.as_view()),
    path("plans/<int:plan_id>/rehearsals", Rehearsals.as_view()),
    *[path(f"plans/<int:plan_id>/{VERBS[view.verb].resource}", view.as_view()) for view in VERB_VIEWS],
    path("stages", StageList.as_view()),
    path("stages/<int:stage_id>", StageDetail.as_view()),
    path("stages/<int:stage_id>/approvals", StageApprovals.as_view()),
    path("stages/<int:stage_id>/break-glass", StageOverrides.as_view()),
    path("stages/<int:stage_id>/bundle", StageBundle.as_view()),
    path("stages/<int:stage_id>/checks", StageChecks.as_view()),
    path("stages/<int:stage_id>/test-jobs", StageTestJobs.as_view()),
    path("pools/<int:pool_id>/gates", PoolGatesDetail.as_view()),
    path("pools/<int:pool_id>/gate-previews", PoolGatesPreviews.as_view()),
    path("windows", WindowList.as_view()),
    path("windows/<int:window_id>", WindowDetail.as_view()),
    path("windows/<int:window_id>/removals", WindowRemovals.as_view()),
    path("window-previews", WindowPreviews.as_view()),
    path("stop", Stop.as_view()),
    path("stop/lifts", StopLifts.as_view()),
    path("targets/<int:target_id>/exclusions", Exclusions.as_view()),
    path("targets/<int:target_id>/retries", Retries.as_view()),
]
