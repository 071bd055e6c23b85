from django.urls import path

from maintenance.api.cases import CaseClosures, CaseDetail, CaseList, CaseMoves, CaseRetirements

urlpatterns = [
    path("cases", CaseList.as_view()),
    path("cases/<int:case_id>", CaseDetail.as_view()),
    path("cases/<int:case_id>/moves", CaseMoves.as_view()),
    path("cases/<int:case_id>/closures", CaseClosures.as_view()),
    path("cases/<int:case_id>/retirements", CaseRetirements.as_view()),
]
