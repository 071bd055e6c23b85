"""Everybody who lives in a cluster, on one loop: controllers, kubelets, NVIDIA's operator."""

import threading

from simulator.actors.budgets import Budgets
from simulator.actors.cluster import Cluster
from simulator.actors.daemonset import DaemonSets
from simulator.actors.deployment import Deployments
from simulator.actors.dra.allocating import Allocating
from simulator.actors.dra.api import Api
from simulator.actors.dra.publishing import Publishing
from simulator.actors.durations import Durations
from simulator.actors.exporting.exporters import Exporters
from simulator.actors.garbage import Garbage
from simulator.actors.gpu_operator.cluster_policy import ClusterPolicies
from simulator.actors.gpu_operator.drivers import Drivers
from simulator.actors.gpu_operator.gpu_clusters import GpuClusters
from simulator.actors.gpu_operator.keys import COMPONENT, DRIVER_COMPONENT
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, GPU_CLUSTER, NVIDIA_DRIVER
from simulator.actors.gpu_operator.node.ailments import Ailments
from simulator.actors.gpu_operator.node.device_plugin import DevicePlugins
from simulator.actors.gpu_operator.node.gfd import FeatureDiscovery
from simulator.actors.gpu_operator.node.left_paused import PausesLeftBehind
from simulator.actors.gpu_operator.node.loaded import LoadedDrivers
from simulator.actors.gpu_operator.node.mig_manager import MigManagers
from simulator.actors.gpu_operator.node.operand_lives import life_of
from simulator.actors.gpu_operator.node_labels import NodeLabels
from simulator.actors.gpu_operator.policy_driver import PolicyDriver
from simulator.actors.gpu_operator.release import Release
from simulator.actors.gpu_operator.upgrade import Upgrades
from simulator.actors.janitor import Janitor
from simulator.actors.job import Jobs
from simulator.actors.kubelet.flapping import Flapping
from simulator.actors.kubelet.heartbeat import Heartbeats
from simulator.actors.kubelet.kubelets import Kubelets
from simulator.actors.kubelet.reboot import Reboots
from simulator.actors.kubelet.resource_health import ResourceHealth
from simulator.actors.kubelet.runtime_races import RuntimeRaces
from simulator.actors.lifecycle_manager import LifecycleManager
from simulator.actors.loop import Loop
from simulator.actors.node_taints import NodeTaints
from simulator.actors.objects import Obj, labels
from simulator.actors.propagation import Propagation
from simulator.actors.quota_status import QuotaStatus
from simulator.actors.repairers import GPU_RESET, MAINTENANCE_REQUEST, REBOOT_NODE
from simulator.actors.replicaset import ReplicaSets
from simulator.actors.scheduler import Scheduler
from simulator.actors.stateful_set import StatefulSets
from simulator.actors.stuck_drains import StuckDrains
from simulator.actors.tainting import Tainting
from simulator.actors.watchmen import Watchmen
from simulator.actors.world import World
from simulator.faults import Board
from simulator.kinds import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NODE,
    POD,
    REPLICA_SET,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    Kind,
)

KINDS = (
    NODE,
    POD,
    DAEMON_SET,
    CONTROLLER_REVISION,
    REPLICA_SET,
    DEPLOYMENT,
    STATEFUL_SET,
    JOB,
    DISRUPTION_BUDGET,
    RESOURCE_QUOTA,
    CLUSTER_POLICY,
    NVIDIA_DRIVER,
)
OWNERS = (DAEMON_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, JOB, CLUSTER_POLICY, NVIDIA_DRIVER)


def _kinds(dra: Api | None, release: Release, *, has_janitor: bool) -> tuple[Kind, ...]:
    kinds = (*KINDS, *((REBOOT_NODE, GPU_RESET, MAINTENANCE_REQUEST) if has_janitor else ()))
    if dra is None:
        return kinds
    return (*kinds, dra.slice, dra.claim, dra.template, *([GPU_CLUSTER] if release.is_26_7 else []))


class Play:
    """The order of the actors is the order in which they hear of a change: a DaemonSet gets its new revision before
    the operator looks at it."""

    def __init__(
        self,
        cluster: Cluster,
        loop: Loop,
        faults: Board,
        *,
        release: Release | None = None,
        durations: Durations | None = None,
        keeps_budgets: bool = False,
        dra: Api | None = None,
        tells_devices: bool = False,
        is_on_nodes_alone: bool = False,
        has_janitor: bool = False,
    ) -> None:
        """`keeps_budgets`: nobody else in this cluster writes the status of disruption budgets. `dra`: how its group
        is served; None: nobody here claims devices. `tells_devices`: kubelets name devices in pods' status.
        `is_on_nodes_alone`: the cluster has its own controllers, scheduler and GPU Operator; kubelets are played, and
        what pods would do on their nodes. `has_janitor`: NVSentinel's janitor and lifecycle-manager are
        installed.
        """
        release, self._durations = release or Release(), durations or Durations()
        self.loop = loop
        self.world = world = World(cluster, loop, _kinds(dra, release, has_janitor=has_janitor))
        self.kubelets = Kubelets(world, self._durations, faults, life_of, self._stop_s)
        self.heartbeats = Heartbeats(world)
        hosts = self.kubelets.hosts
        self.exporters = Exporters(world, hosts, self.kubelets.holdings, faults)
        if is_on_nodes_alone:
            self.actors: tuple[object, ...] = self._on_nodes(faults)
            return
        self.actors = (
            LoadedDrivers(world, hosts),
            NodeTaints(world),
            DaemonSets(world, faults),
            Deployments(world),
            ReplicaSets(world),
            StatefulSets(world),
            Jobs(world),
            Garbage(world, OWNERS),
            Propagation(world, OWNERS),
            Scheduler(world),
            DevicePlugins(world, hosts, self._durations, faults),
            FeatureDiscovery(world, hosts, self._durations, faults),
            MigManagers(
                world, hosts, self._durations, Reboots(world, hosts, self.heartbeats, self._durations, faults), faults
            ),
            Drivers(world, release),
            PolicyDriver(world),
            NodeLabels(world, release),
            ClusterPolicies(world, release),
            Upgrades(world, release),
            Flapping(world, self.heartbeats, faults),
            QuotaStatus(world),
            StuckDrains(world, faults),
            Ailments(world, hosts, faults),
            Tainting(world, faults),
            PausesLeftBehind(world, faults),
            RuntimeRaces(world, self.kubelets.holdings, faults),
            Watchmen(world, faults),
            *([Budgets(world)] if keeps_budgets else []),
            *([Publishing(world, hosts, self._durations, faults, dra), Allocating(world, dra)] if dra else []),
            *([GpuClusters(world)] if GPU_CLUSTER in world.caches else []),
        )
        if has_janitor:
            self.actors += (LifecycleManager(world, faults),)
            self.actors += (Janitor(world, Reboots(world, hosts, self.heartbeats, self._durations, faults)),)
        if tells_devices:
            self._tell_devices(faults)

    def _on_nodes(self, faults: Board) -> tuple[object, ...]:
        world, hosts, durations = self.world, self.kubelets.hosts, self._durations
        return (
            LoadedDrivers(world, hosts),
            DevicePlugins(world, hosts, durations, faults),
            FeatureDiscovery(world, hosts, durations, faults),
            MigManagers(world, hosts, durations, Reboots(world, hosts, self.heartbeats, durations, faults), faults),
            Flapping(world, self.heartbeats, faults),
            Ailments(world, hosts, faults),
            RuntimeRaces(world, self.kubelets.holdings, faults),
        )

    def _tell_devices(self, faults: Board) -> None:
        health = ResourceHealth(self.world, self.kubelets.hosts, self.kubelets.holdings, faults)
        self.kubelets.dress = health.dress

    def fill(self) -> None:
        self.world.fill()

    def start(self) -> threading.Thread:
        """Follow the cluster and play, in threads of its own, until `stop`."""
        self.loop.post(self.heartbeats.start)
        for mirror in self.world.mirrors:
            mirror.start(self.loop)
        thread = threading.Thread(target=self.loop.run, name="actors", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        for mirror in self.world.mirrors:
            mirror.stop()
        self.loop.stop()

    def _stop_s(self, pod: Obj) -> float:
        if labels(pod).get(COMPONENT) == DRIVER_COMPONENT:
            return self._durations.driver_stop
        return self._durations.operand_stop if life_of(pod) else self._durations.tenant_stop
