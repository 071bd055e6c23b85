"""REST owes the pages nothing: each live part of a page has an address in REST with the same content."""

import re

from django.urls import URLPattern, URLResolver, get_resolver

from tests.config.test_lists import gets

IN_REST = """
    approval-ahead            stages/{stage_id}/checks
    approval-live             stages/{stage_id}
    approvals-count           approvals
    approvals-part            approvals
    case-part                 cases/{case_id}
    cluster-compatibility     clusters/{cluster_id}/compatibility
    cluster-external-rollouts external-rollouts
    cluster-findings          findings
    cluster-free-gpu-history  clusters/{cluster_id}/free-gpus/history
    cluster-free-gpus         clusters/{cluster_id}/free-gpus
    cluster-kinds             clusters/{cluster_id}
    cluster-list              clusters
    cluster-part              clusters/{cluster_id}/stack
    cluster-restraints        freezes
    cluster-telemetry         clusters/{cluster_id}/telemetry-source
    cluster-trouble           findings
    comparable-gpu            nodes/{node_id}/gpus/{index}/comparable
    comparable-node           nodes/{node_id}/comparable
    criticals-count           findings
    delivery-log              notification-deliveries
    delivery-outcome          notification-deliveries/{delivery_id}
    events-part               events
    external-rollout-part     external-rollouts/{rollout_id}
    finding-case              cases
    finding-silences          notification-channels
    findings-part             finding-groups
    findings-strip            findings
    fleet-clusters            clusters
    fleet-map                 nodes
    fleet-map-index           nodes
    fleet-nodes               nodes
    fleet-overview            clusters
    freezes-part              freezes
    gate-review               plans/{plan_id}/gate-review
    gpu-findings              findings
    gpu-hours                 nodes/{node_id}/gpus/{index}/hours
    gpu-part                  nodes/{node_id}/gpus/{index}
    gpu-placements            nodes/{node_id}/gpus/{index}/placements
    gpu-test-results          nodes/{node_id}/test-results
    gpu-telemetry             nodes/{node_id}/telemetry
    gpu-timeline              nodes/{node_id}/gpus/{index}/timeline
    gpus-part                 gpu-health
    image-pulls-part          plans/{plan_id}/image-pulls
    ledger-part               disruptions
    live-checks-part          plans/{plan_id}/live-checks
    maintenance-part          cases
    map-metric                gpu-health
    namespace-part            clusters/{cluster_id}/namespaces/{namespace}
    node-case                 cases
    node-compatibility        nodes/{node_id}/compatibility
    node-findings             findings
    node-hours                nodes/{node_id}/hours
    node-operations           operations
    node-part                 nodes/{node_id}
    node-stack                nodes/{node_id}/stack
    node-telemetry            nodes/{node_id}/telemetry
    node-test-results         nodes/{node_id}/test-results
    node-timeline             nodes/{node_id}/timeline
    operation-part            operations/{operation_id}
    case-operation-part       operations/{operation_id}
    operations-part           operations
    plan-forecast             plans/{plan_id}/forecast
    plan-history              plans/{plan_id}/events
    plan-part                 plans/{plan_id}
    plan-preview              plans/{plan_id}/preview
    plan-traffic              plans/{plan_id}/traffic-calls
    plans-part                plans
    plans-strip               plans
    pod-checklist             pods/{pod_id}/checklist
    pod-log                   pods/{pod_id}/log
    pod-part                  pods/{pod_id}
    pods-part                 pods
    pool-defragmentation      pools/{pool_id}/defragmentation
    pool-findings             findings
    pool-free-gpu-history     pools/{pool_id}/free-gpus/history
    pool-free-gpus            pools/{pool_id}/free-gpus
    pool-mig-demand           pools/{pool_id}/mig-demand
    pool-part                 pools/{pool_id}
    pool-placement            pools/{pool_id}/placement
    pool-price                pools/{pool_id}/price
    pool-restraints           freezes
    pool-suggestions          clusters/{cluster_id}/pool-suggestions
    pool-tenants              pools/{pool_id}/tenants
    pools-part                pools
    rehearsals-part           plans/{plan_id}/rehearsals
    rejected-workloads        rejected-workloads
    segments-part             segments
    stop-banner               stop
    suspended-jobs-part       suspended-jobs
    telemetry-trial           clusters/{cluster_id}/telemetry-source/trials/{trial_id}
    unstarted-pods            pods/unstarted
    unwatched-part            clusters
    usage-part                usage
    usage-report-part         usage/report
    wave-part                 stages/{stage_id}
    workload-part             clusters/{cluster_id}/workloads/{workload}
"""
WITHOUT = {
    "gate-plots": "pictures of the gate results in stages/{stage_id}; their samples are in telemetry/history",
    "node-which-gpus": "the holders are in nodes/{node_id}; the part explains why one is unknown",
    "status-part": "the state of processes is in /metrics and /readyz",
}


def parts(patterns: list[URLPattern | URLResolver], before: str = "") -> set[str]:
    found = set()
    for pattern in patterns:
        path = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            found |= parts(pattern.url_patterns, path)
        elif path.startswith("parts/"):
            found.add(str(pattern.name))
    return found


def test_each_part_of_a_page_has_an_address_in_rest():
    table = dict(re.findall(r"^ +(\S+) +(\S+)$", IN_REST, re.MULTILINE))
    served = {path.removeprefix("/api/v1/") for path in gets()}

    assert parts(get_resolver().url_patterns) == table.keys() | WITHOUT.keys()
    assert {part: path for part, path in table.items() if path not in served} == {}
