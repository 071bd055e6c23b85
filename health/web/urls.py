from django.urls import path

from health.web import (
    acts,
    compatibility,
    findings_page,
    inbox_page,
    map_metrics,
    node_stack,
    rules_page,
    telemetry,
    telemetry_form,
    which_gpus,
)

urlpatterns = [
    path("clusters/<int:cluster_id>/telemetry", telemetry_form.edit, name="telemetry-form"),
    path("clusters/<int:cluster_id>/telemetry/remove", telemetry_form.remove, name="telemetry-remove"),
    path("clusters/<int:cluster_id>/telemetry/ask", telemetry_form.ask, name="telemetry-ask"),
    path("findings", inbox_page.inbox, name="findings"),
    path("findings/rules", rules_page.rules, name="rules"),
    path("findings/<int:finding_id>/<slug:verb>", acts.act, name="act-on-finding"),
    path("mutes/<int:mute_id>/lift", acts.lift, name="lift-mute"),
    path("parts/findings", inbox_page.inbox_part, name="findings-part"),
    path("parts/findings/strip", findings_page.findings_strip_part, name="findings-strip"),
    path(
        "parts/clusters/<int:cluster_id>/compatibility",
        compatibility.cluster_compatibility_part,
        name="cluster-compatibility",
    ),
    path("parts/clusters/<int:cluster_id>/findings", findings_page.cluster_findings_part, name="cluster-findings"),
    path("parts/clusters/<int:cluster_id>/telemetry", telemetry.cluster_telemetry_part, name="cluster-telemetry"),
    path("parts/clusters/<int:cluster_id>/trouble", findings_page.cluster_trouble_part, name="cluster-trouble"),
    path("parts/fleet/map/metrics/<slug:name>", map_metrics.map_metric, name="map-metric"),
    path("parts/nodes/<int:node_id>/compatibility", compatibility.node_compatibility_part, name="node-compatibility"),
    path("parts/nodes/<int:node_id>/findings", findings_page.node_findings_part, name="node-findings"),
    path("parts/nodes/<int:node_id>/stack", node_stack.node_stack_part, name="node-stack"),
    path("parts/nodes/<int:node_id>/telemetry", telemetry.node_telemetry_part, name="node-telemetry"),
    path("parts/nodes/<int:node_id>/which", which_gpus.node_which_gpus_part, name="node-which-gpus"),
    path("parts/pools/<int:pool_id>/findings", findings_page.pool_findings_part, name="pool-findings"),
]
