from django.urls import path

from maintenance.web import board, case_page, case_strip

urlpatterns = [
    path("maintenance", board.board, name="maintenance"),
    path("parts/maintenance", board.board_part, name="maintenance-part"),
    path("cases/new", case_page.new, name="new-case"),
    path("cases/<int:case_id>", case_page.case, name="case"),
    path("parts/cases/<int:case_id>", case_page.case_part, name="case-part"),
    path("cases/<int:case_id>/<slug:act>", case_page.carry_out, name="case-act"),
    path("parts/nodes/<int:node_id>/case", case_strip.node_part, name="node-case"),
    path("parts/findings/<int:finding_id>/case", case_strip.finding_part, name="finding-case"),
]
