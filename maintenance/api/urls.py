from django.urls import path

from maintenance.api.automatic import (
    AutomaticBacktests,
    AutomaticBreakerResets,
    AutomaticDecisions,
    AutomaticDetail,
    AutomaticList,
    AutomaticModes,
    AutomaticRules,
    AutomaticSwitches,
)
from maintenance.api.cases import COMMAND_VIEWS, CaseDetail, CaseList, CaseMoves, CaseRepairActors
from maintenance.api.new_nodes import NewNodeGateDetail, NewNodeGateList, NewNodeGateSettings
from maintenance.api.offenders import RepeatOffenders
from maintenance.api.receivers import ReceiverDetail, ReceiverList

urlpatterns = [
    path("automatic-quarantines", AutomaticList.as_view()),
    path("automatic-quarantines/<int:pool_id>", AutomaticDetail.as_view()),
    path("automatic-quarantines/<int:pool_id>/modes", AutomaticModes.as_view()),
    path("automatic-quarantines/<int:pool_id>/rules", AutomaticRules.as_view()),
    path("automatic-quarantines/<int:pool_id>/switches", AutomaticSwitches.as_view()),
    path("automatic-quarantines/<int:pool_id>/breaker-resets", AutomaticBreakerResets.as_view()),
    path("automatic-quarantines/<int:pool_id>/decisions", AutomaticDecisions.as_view()),
    path("automatic-quarantines/<int:pool_id>/backtests", AutomaticBacktests.as_view()),
    path("cases", CaseList.as_view()),
    path("cases/<int:case_id>", CaseDetail.as_view()),
    path("cases/<int:case_id>/moves", CaseMoves.as_view()),
    path("cases/<int:case_id>/repair-actors", CaseRepairActors.as_view()),
    path("new-node-gates", NewNodeGateList.as_view()),
    path("new-node-gates/<int:pool_id>", NewNodeGateDetail.as_view()),
    path("new-node-gates/<int:pool_id>/settings", NewNodeGateSettings.as_view()),
    path("repeat-offenders", RepeatOffenders.as_view()),
    path("repair-receivers", ReceiverList.as_view()),
    path("repair-receivers/<int:receiver_id>", ReceiverDetail.as_view()),
    *(path(f"cases/<int:case_id>/{resource}", view.as_view()) for resource, view in COMMAND_VIEWS.items()),
]
