from django.urls import path

from operations.api.operations import (
    VERB_VIEWS,
    OperationApprovals,
    OperationDetail,
    OperationList,
    OperationNodes,
    OperationPreviews,
)

urlpatterns = [
    path("operations", OperationList.as_view()),
    path("operations/previews", OperationPreviews.as_view()),
    path("operations/<int:operation_id>", OperationDetail.as_view()),
    path("operations/<int:operation_id>/nodes", OperationNodes.as_view()),
    path("operations/<int:operation_id>/approvals", OperationApprovals.as_view()),
    *(path(f"operations/<int:operation_id>/{resource}", view.as_view()) for resource, view in VERB_VIEWS.items()),
]
