from django.urls import path

from fleet.web import cluster_page, findings_page, fleet_page, node_page

urlpatterns = [
    path("", fleet_page.fleet, name="fleet"),
    path("parts/fleet/summary", fleet_page.summary_part, name="fleet-summary"),
    path("parts/fleet/clusters", fleet_page.clusters_part, name="fleet-clusters"),
    path("parts/fleet/pools", fleet_page.pools_part, name="fleet-pools"),
    path("parts/fleet/nodes", fleet_page.nodes_part, name="fleet-nodes"),
    path("parts/fleet/map", fleet_page.map_part, name="fleet-map"),
    path("findings", findings_page.findings, name="findings"),
    path("parts/findings", findings_page.findings_part, name="findings-part"),
    path("parts/findings/strip", findings_page.findings_strip_part, name="findings-strip"),
    path("clusters/<int:cluster_id>", cluster_page.cluster, name="cluster"),
    path("parts/clusters/<int:cluster_id>", cluster_page.cluster_part, name="cluster-part"),
    path("nodes/<int:node_id>", node_page.node, name="node"),
    path("parts/nodes/<int:node_id>", node_page.node_part, name="node-part"),
]
