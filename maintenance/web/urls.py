from django.urls import path

from maintenance.web import automatic_page, board, case_page, case_strip, new_nodes_page, offenders_page, receivers_page

urlpatterns = [
    path("maintenance/automatic", automatic_page.pools, name="automatic-quarantines"),
    path("maintenance/automatic/<int:pool_id>", automatic_page.pool, name="automatic-quarantine"),
    path("maintenance/automatic/<int:pool_id>/mode", automatic_page.change_mode, name="automatic-quarantine-mode"),
    path(
        "maintenance/automatic/<int:pool_id>/switches",
        automatic_page.set_switches,
        name="automatic-quarantine-switches",
    ),
    path("maintenance/automatic/<int:pool_id>/rule", automatic_page.change_rule, name="automatic-quarantine-rule"),
    path("maintenance/automatic/<int:pool_id>/reset", automatic_page.reset_breaker, name="automatic-quarantine-reset"),
    path("maintenance/new-nodes", new_nodes_page.pools, name="new-node-gates"),
    path("maintenance/new-nodes/<int:pool_id>", new_nodes_page.pool, name="new-node-gate"),
    path("maintenance/repeat-offenders", offenders_page.repeat_offenders, name="repeat-offenders"),
    path("maintenance/receivers", receivers_page.receivers, name="repair-receivers"),
    path("maintenance/receivers/<int:receiver_id>/remove", receivers_page.remove, name="remove-repair-receiver"),
    path("maintenance", board.board, name="maintenance"),
    path("parts/maintenance", board.board_part, name="maintenance-part"),
    path("cases/new", case_page.new_case, name="new-case"),
    path("cases/<int:case_id>", case_page.case, name="case"),
    path("parts/cases/<int:case_id>", case_page.case_part, name="case-part"),
    path("cases/<int:case_id>/<slug:act>", case_page.carry_out, name="case-act"),
    path("parts/nodes/<int:node_id>/case", case_strip.node_part, name="node-case"),
    path("parts/findings/<int:finding_id>/case", case_strip.finding_part, name="finding-case"),
]
