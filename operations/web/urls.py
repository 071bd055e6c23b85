from django.urls import path

from operations.web import node_actions, operation_page, operations_page

urlpatterns = [
    path("operations", operations_page.operations, name="operations"),
    path("parts/operations", operations_page.operations_part, name="operations-part"),
    path("operations/new", operation_page.new_operation, name="new-operation"),
    path("maintenance/operations/new", operation_page.new_operation, name=operation_page.OF_CASES),
    path("operations/<int:operation_id>", operation_page.operation, name="operation"),
    path("maintenance/operations/<int:operation_id>", operation_page.operation, name="case-operation"),
    path("parts/operations/<int:operation_id>", operation_page.operation_part, name="operation-part"),
    path("parts/maintenance/operations/<int:operation_id>", operation_page.operation_part, name="case-operation-part"),
    path("operations/<int:operation_id>/<slug:verb>", operation_page.carry_out, name="operation-verb"),
    path("maintenance/operations/<int:operation_id>/<slug:verb>", operation_page.carry_out, name="case-operation-verb"),
    path("parts/nodes/<int:node_id>/operations", node_actions.node_part, name="node-operations"),
]
