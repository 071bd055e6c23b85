"""Places a plan in a cluster, settled: everything bound, running and ready, as if it had been so for weeks."""

import random
from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta

from simulator.actors.cluster import Cluster
from simulator.actors.daemonset import belongs, pod_of
from simulator.actors.deployment import replica_set_of
from simulator.actors.dra.api import Api
from simulator.actors.exporting.counters import Choice
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, GPU_CLUSTER, NVIDIA_DRIVER
from simulator.actors.gpu_operator.policy_driver import policy_driver_set
from simulator.actors.gpu_operator.template import daemon_set
from simulator.actors.kubelet.host import Host, host_of
from simulator.actors.kubelet.sandbox import Sandbox
from simulator.actors.objects import Obj, name, namespace, owned_by
from simulator.actors.replicaset import pod_from
from simulator.actors.revisions import hash_of, revision_of
from simulator.clock import stamp
from simulator.fleets import exporters, limits, machines, operator, owners, system
from simulator.fleets.claiming import Claiming, is_claiming
from simulator.fleets.config_maps import METRICS_CONFIG_MAP, config_maps, own_metrics
from simulator.fleets.definitions import definitions
from simulator.fleets.dra_operands import CHART_NAMESPACE, chart_set, cluster_sets
from simulator.fleets.operands import nfd_worker, operand_sets
from simulator.fleets.owners import Owned
from simulator.fleets.packing import packed
from simulator.fleets.plan import Mode, Plan
from simulator.fleets.tenants import Owner, Workload, disruption_budget, priority_classes
from simulator.fleets.vendors import GAUDI, MI300X
from simulator.fleets.weight import as_in_life
from simulator.kinds import (
    CONFIG_MAP,
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEFINITION,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    RESOURCE_QUOTA,
    SERVICE_ACCOUNT,
    Kind,
    ResourceApi,
)
from simulator.refusals import Refused

OS_TAG = "ubuntu22.04"
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SETTLED = timedelta(days=20)


class Planting:
    def __init__(self, cluster: Cluster, plan: Plan, now: datetime, resource_api: ResourceApi = ResourceApi.V1) -> None:
        self._cluster = cluster
        self._plan = plan
        self._now = now
        self._since = stamp(now - SETTLED)
        self._random = random.Random(1)
        self._names: set[str] = set()
        self._nodes: list[Obj] = []
        self._hosts: dict[str, Host] = {}
        self._claiming = Claiming(Api(resource_api), self._put, self._new_name)

    def plant(self) -> None:
        self._account("default", "default")
        for workload in self._plan.workloads:
            self._namespace(workload.namespace)
        self._namespace(keys.NAMESPACE)
        for each in priority_classes():
            self._put(PRIORITY_CLASS, each)
        for each in definitions(is_26_7=self._plan.release.is_26_7):
            self._put(DEFINITION, each)
        for each in config_maps(self._plan.counters):
            self._put(CONFIG_MAP, each)
        self._plant_nodes()
        if self._plan.has_claims:
            self._plant_devices()
        self._plant_operator()
        self._plant_tenants()
        if self._plan.has_agent:
            self._namespace(system.AGENT_NAMESPACE)
            self._account("default", system.AGENT_NAMESPACE)
            self._plant_set(system.gpu_agent())
        self._plant_exporters()
        for program in system.PROGRAMS:
            self._namespace(program.namespace)
            self._account("default", program.namespace)
            made = self._put(DEPLOYMENT, _aged(system.deployment(program), self._since))
            self._plant_replicas(made, replica_set_of(made, replicas=program.replicas))

    def _plant_exporters(self) -> None:
        """Those that are not the operator's."""
        has_own = any(machine.has_own_exporter for machine in self._plan.machines)
        vendors = {machine.accelerators.resource for machine in self._plan.machines if machine.accelerators}
        wanted = [
            *([exporters.own_dcgm_exporter()] if has_own else []),
            *([exporters.amd_exporter()] if MI300X.resource in vendors else []),
            *([exporters.gaudi_exporter()] if GAUDI.resource in vendors else []),
        ]
        if wanted:
            self._namespace(exporters.MONITORING)
            self._account("default", exporters.MONITORING)
        if has_own:
            self._put(CONFIG_MAP, own_metrics())
        for each in wanted:
            self._plant_set(each)

    def _plant_nodes(self) -> None:
        for machine in self._plan.machines:
            wanted = as_in_life(machines.node(machine, self._now))
            if not self._plan.release.is_26_7:
                wanted["metadata"]["labels"].pop(keys.OWNER, None)
            node = self._put(NODE, wanted)
            if node["spec"].get("taints"):  # an API server taints every node that registers as not ready
                node = self._cluster.patch(NODE, name(node), {"spec": {"taints": None}})
            self._nodes.append(node)
            self._hosts[name(node)] = replace(host_of(node), driver=machine.driver)

    def _plant_devices(self) -> None:
        self._claiming.plant_classes()
        claiming = {machine.name for machine in self._plan.machines if machine.has_claims}
        for node in self._nodes:
            if name(node) in claiming:
                self._claiming.plant_slice(node, self._hosts[name(node)])

    def _plant_operator(self) -> None:
        version = self._plan.release.version
        if self._plan.mode is Mode.GPU_CLUSTER:
            self._claiming.plant_validator_template()
            owner = self._put(GPU_CLUSTER, _aged(operator.gpu_cluster(self._plan, self._now), self._since))
            self._plant_sets(owner, "nvidia.com/v1alpha1", "GPUCluster", [*cluster_sets(version), nfd_worker()])
        else:
            owner = self._put(CLUSTER_POLICY, _aged(operator.cluster_policy(self._plan, self._now), self._since))
            metrics = METRICS_CONFIG_MAP if self._plan.counters is not Choice.SHIPPED else ""
            sets = operand_sets(version, has_mps=self._plan.has_mps, metrics=metrics)
            self._plant_sets(owner, "nvidia.com/v1", "ClusterPolicy", sets)
            if self._plan.has_claims:
                self._namespace(CHART_NAMESPACE)
                self._plant_set(chart_set(version))
        self._plant_drivers(owner)
        self._plant_operator_pod()

    def _plant_sets(self, owner: Obj, api_version: str, kind: str, sets: list[Obj]) -> None:
        for each in sets:
            each["metadata"]["ownerReferences"] = [owned_by(owner, api_version=api_version, kind=kind)]
            self._plant_set(each)

    def _plant_drivers(self, policy: Obj) -> None:
        if self._plan.mode is Mode.CLUSTER_POLICY:
            self._plant_driver_set(policy_driver_set(policy, OS_TAG))
        for called, selector in self._plan.drivers.items():
            asked = operator.nvidia_driver(self._plan, called, selector, self._now)
            driver = self._put(NVIDIA_DRIVER, _aged(asked, self._since))
            self._plant_driver_set(daemon_set(driver, OS_TAG, has_owner_label=self._plan.release.is_26_7))

    def _plant_driver_set(self, wanted: Obj) -> None:
        self._account(wanted["spec"]["template"]["spec"]["serviceAccountName"], keys.NAMESPACE)
        self._plant_set(wanted)

    def _plant_set(self, wanted: Obj) -> None:
        """A DaemonSet with its one revision, its pods, and a status that counts them."""
        made = self._put(DAEMON_SET, _aged(wanted, self._since))
        hash_ = hash_of(self._put(CONTROLLER_REVISION, revision_of(made, 1)))
        homes = [node for node in self._nodes if belongs(made, node)]
        for node in homes:
            self._plant_pod(pod_of(made, hash_, name(node)), name(node))
        count = len(homes)
        parts = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady")
        status = dict.fromkeys((*parts, "numberAvailable"), count) | {"numberMisscheduled": 0, "observedGeneration": 1}
        self._cluster.patch(DAEMON_SET, name(made), {"status": status}, namespace(made), subresource="status")

    def _plant_pod(self, pod: Obj, node_name: str) -> None:
        """Bound and ready; without a node: waiting for the scheduler."""
        metadata = {**pod["metadata"]}
        if "generateName" in metadata:
            metadata["name"] = self._new_name(metadata["generateName"])
        pod = {**pod, "metadata": metadata}
        if node_name:
            metadata["creationTimestamp"] = self._since
            host = self._hosts[node_name]
            pod["spec"] = {**pod["spec"], "nodeName": node_name}
            pod["status"] = {**_running(pod, host, self._since, self._now - SETTLED)}
        if node_name and is_claiming(pod):
            pod["status"]["resourceClaimStatuses"] = self._claiming.names(pod)
            self._claiming.plant_claims(self._put(POD, pod), node_name)
            return
        self._put(POD, pod)

    def _new_name(self, prefix: str) -> str:
        """With thousands of pods of one prefix, five letters meet again; the API server draws again, too."""
        while (drawn := prefix + "".join(self._random.choices(LETTERS, k=5))) in self._names:
            continue
        self._names.add(drawn)
        return drawn

    def _plant_tenants(self) -> None:
        homes: dict[int, list[str]] = defaultdict(list)
        for each in packed(self._plan.workloads, self._plan.machines):
            homes[id(each.workload)].append(each.node)
        for workload in self._plan.workloads:
            nodes = homes[id(workload)]
            owned = self._plant_workload(workload, ready=sum(bool(node) for node in nodes))
            for ordinal, node in enumerate(nodes):
                self._plant_pod(owned.pod(ordinal), node)
        self._plant_limits()

    def _plant_workload(self, workload: Workload, ready: int) -> Owned:
        if workload.has_claims:
            self._claiming.plant_template(workload)
        if workload.budget is not None:
            self._put(DISRUPTION_BUDGET, disruption_budget(workload))
        owner = self._plant_owner(owners.owner_of(workload), workload, ready, workload.owner)
        if workload.owner is not Owner.DEPLOYMENT:
            return Owned(owner, workload.owner)
        under = owners.replica_set_under(owner, workload)
        return Owned(self._plant_owner(under, workload, ready, Owner.REPLICA_SET), Owner.REPLICA_SET)

    def _plant_owner(self, obj: Obj, workload: Workload, ready: int, owner: Owner) -> Obj:
        kind = owners.KINDS[owner]
        made = self._put(kind, _aged(obj, self._since))
        self._count(kind, made, owners.counts(workload, ready, owner=owner, since=self._since))
        return made

    def _plant_limits(self) -> None:
        limited = [workload for workload in self._plan.workloads if workload.is_limited]
        for where in sorted({workload.namespace for workload in limited}):
            mine = [workload for workload in self._plan.workloads if workload.namespace == where]
            self._put(RESOURCE_QUOTA, limits.quota_of(where, mine))
            self._put(LIMIT_RANGE, limits.range_of(where, mine[0]))

    def _plant_operator_pod(self) -> None:
        deployment = self._put(DEPLOYMENT, _aged(operator.deployment(self._plan.release.version), self._since))
        self._plant_replicas(deployment, operator.replica_set(deployment))

    def _plant_replicas(self, deployment: Obj, under: Obj) -> None:
        """On the nodes without GPUs, in turn."""
        made = self._put(REPLICA_SET, _aged(under, self._since))
        homes = [name(node) for node in self._nodes if keys.PRESENT not in node["metadata"]["labels"]]
        number: int = deployment["spec"]["replicas"]
        for ordinal in range(number):
            pod = pod_from(made, api_version="apps/v1", kind="ReplicaSet")
            self._plant_pod(pod, homes[ordinal % len(homes)])
        counted = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), number) | {"observedGeneration": 1}
        self._count(REPLICA_SET, made, counted | {"fullyLabeledReplicas": number})
        self._count(DEPLOYMENT, deployment, counted | {"updatedReplicas": number})

    def _count(self, kind: Kind, obj: Obj, counts: Obj) -> None:
        self._cluster.patch(kind, name(obj), {"status": counts}, namespace(obj), subresource="status")

    def _namespace(self, called: str) -> None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": called}}
        if self._exists(NAMESPACE, called):
            return
        self._put(NAMESPACE, made)
        self._account("default", called)

    def _account(self, called: str, where: str) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": called, "namespace": where}}
        if not self._exists(SERVICE_ACCOUNT, called, where):
            self._put(SERVICE_ACCOUNT, account)

    def _exists(self, kind: Kind, called: str, where: str = "") -> bool:
        try:
            self._cluster.get(kind, called, where)
        except Refused as refusal:
            if refusal.status != 404:
                raise
            return False
        return True

    def _put(self, kind: Kind, obj: Obj) -> Obj:
        return self._cluster.seed(kind, obj, namespace(obj))


def _aged(obj: Obj, since: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "creationTimestamp": since}}


def _running(pod: Obj, host: Host, since: str, at: datetime) -> Obj:
    shaped = {**pod, "metadata": {**pod["metadata"], "uid": ""}}
    return Sandbox.running(shaped, host_ip=host.ip, pod_ip=host.next_pod_ip(), at=since).report(at)
