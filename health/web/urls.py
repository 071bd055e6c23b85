from django.urls import path

from health.web import compatibility, findings_page, node_stack

urlpatterns = [
    path("findings", findings_page.findings, name="findings"),
    path("parts/findings", findings_page.findings_part, name="findings-part"),
    path("parts/findings/strip", findings_page.findings_strip_part, name="findings-strip"),
    path(
        "parts/clusters/<int:cluster_id>/compatibility",
        compatibility.cluster_compatibility_part,
        name="cluster-compatibility",
    ),
    path("parts/clusters/<int:cluster_id>/findings", findings_page.cluster_findings_part, name="cluster-findings"),
    path("parts/clusters/<int:cluster_id>/trouble", findings_page.cluster_trouble_part, name="cluster-trouble"),
    path("parts/nodes/<int:node_id>/compatibility", compatibility.node_compatibility_part, name="node-compatibility"),
    path("parts/nodes/<int:node_id>/findings", findings_page.node_findings_part, name="node-findings"),
    path("parts/nodes/<int:node_id>/stack", node_stack.node_stack_part, name="node-stack"),
    path("parts/pools/<int:pool_id>/findings", findings_page.pool_findings_part, name="pool-findings"),
]
