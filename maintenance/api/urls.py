from django.urls import path

from maintenance.api.cases import COMMAND_VIEWS, CaseDetail, CaseList, CaseMoves

urlpatterns = [
    path("cases", CaseList.as_view()),
    path("cases/<int:case_id>", CaseDetail.as_view()),
    path("cases/<int:case_id>/moves", CaseMoves.as_view()),
    *(path(f"cases/<int:case_id>/{resource}", view.as_view()) for resource, view in COMMAND_VIEWS.items()),
]
