"""Starts what is bound to its nodes, ends what is deleted, and refuses what does not fit."""

from collections.abc import Callable

from simulator.actors.durations import Durations
from simulator.actors.kubelet import tenant
from simulator.actors.kubelet.devices import Holdings
from simulator.actors.kubelet.host import Host, host_of
from simulator.actors.kubelet.sandbox import Sandbox, rejected
from simulator.actors.kubelet.script import Player, Script
from simulator.actors.kubelet.ward import Dress, Life, Ward
from simulator.actors.objects import Obj, is_finished, is_terminating, is_true, name, node_of, status, uid
from simulator.actors.world import World
from simulator.faults import Board
from simulator.kinds import NODE, POD
from simulator.quantities import amounts, is_gpu, requests, wants_gpu

LifeOf = Callable[[Obj], Life | None]


class Kubelets:
    def __init__(
        self, world: World, durations: Durations, faults: Board, life_of: LifeOf, stop_s: Callable[[Obj], float]
    ):
        self._world = world
        self._durations = durations
        self._faults = faults
        self._life_of = life_of
        self._stop_s = stop_s
        self.dress: Dress | None = None
        self.hosts: dict[str, Host] = {}
        self.holdings = Holdings(world, self.hosts)
        self._players: dict[str, Player] = {}
        self._striking: dict[str, Player] = {}  # what a fault began, which another one does not begin anew
        self._ending: set[str] = set()
        world[NODE].on_change(self._node_changed)
        world[POD].on_change(self._pod_changed)
        faults.on_change(lambda: world.loop.post(self._strike))

    def begin(self, pod_uid: str) -> None:
        pod = self._world[POD].of_uid(pod_uid)
        host = self.hosts.get(node_of(pod)) if pod else None
        if pod is None or host is None or pod_uid in self._players or is_terminating(pod) or is_finished(pod):
            return
        refusal = self._refusal(pod, host)
        if refusal:
            report = rejected(pod, *refusal, self._world.loop.clock.now())
            self._world.patch_status(POD, pod, report)
            return
        ward = self._ward(pod, host, Sandbox(pod, host_ip=host.ip, pod_ip=self._ip(pod, host)))
        self._play(pod_uid, (self._life_of(pod) or tenant.life)(ward))

    def end(self, pod_uid: str) -> None:
        """SIGTERM; the API hears that it is gone when its containers are."""
        pod = self._world[POD].of_uid(pod_uid)
        if pod is None or pod_uid in self._ending:
            return
        self._drop(pod_uid)
        self._ending.add(pod_uid)
        grace_s = float(pod["metadata"].get("deletionGracePeriodSeconds", 30))
        self._world.loop.later(min(grace_s, self._stop_s(pod)), self._confirm, pod_uid)

    def _confirm(self, pod_uid: str) -> None:
        pod = self._world[POD].of_uid(pod_uid)
        if pod is not None:
            self._world.delete(POD, pod, grace_s=0)

    def _refusal(self, pod: Obj, host: Host) -> tuple[str, str] | None:
        """Devices are counted again on the node: the scheduler may have been told of GPUs that are gone."""
        node = self._world[NODE].get(host.name)
        if node is None or not wants_gpu(pod) or status(pod).get("containerStatuses"):
            return None
        has = amounts(status(node).get("allocatable"))
        others = [each for each in self._world[POD].by("node", host.name) if uid(each) != uid(pod)]
        for resource, wanted in requests(pod).items():
            used = sum(requests(each)[resource] for each in others if not is_finished(each))
            if is_gpu(resource) and used + wanted > has[resource]:
                available = max(0, has[resource] - used)
                words = f"Allocate failed due to requested number of devices unavailable for {resource}. "
                words += f"Requested: {wanted}, Available: {available}, which is unexpected"
                return "UnexpectedAdmissionError", words
        return None

    def _ward(self, pod: Obj, host: Host, box: Sandbox) -> Ward:
        return Ward(
            self._world, host, box, self._durations, self._faults, dress=self.dress, gpus_of=self.holdings.gpus_of
        )

    def _ip(self, pod: Obj, host: Host) -> str:
        return host.ip if pod["spec"].get("hostNetwork") else host.next_pod_ip()

    def _play(self, pod_uid: str, script: Script) -> None:
        player = Player(self._world.loop, script)
        self._players[pod_uid] = player
        player.step()

    def _drop(self, pod_uid: str) -> None:
        self._striking.pop(pod_uid, None)
        player = self._players.pop(pod_uid, None)
        if player:
            player.stop()

    def _strike(self) -> None:
        """A fault was switched on: what runs on the harmful driver already begins to crash."""
        for host in self.hosts.values():
            for pod in self._world[POD].by("node", host.name):
                self._strike_pod(host, pod)
            self._world.loop.soon(self._nudge, host.name)

    def _strike_pod(self, host: Host, pod: Obj) -> None:
        player = self._striking.get(uid(pod))
        is_struck = player is not None and player is self._players.get(uid(pod)) and not player.is_over
        if is_struck or not is_true(pod, "Ready") or is_terminating(pod) or self._life_of(pod):
            return
        at = status(pod).get("startTime", "")
        box = Sandbox.running(pod, host_ip=host.ip, pod_ip=status(pod).get("podIP", host.ip), at=at)
        ward = self._ward(pod, host, box)
        if tenant.is_struck(ward, pod):
            self._drop(uid(pod))
            self._play(uid(pod), tenant.crash(ward))
            self._striking[uid(pod)] = self._players[uid(pod)]

    def _nudge(self, node_name: str) -> None:
        for pod in self._world[POD].by("node", node_name):
            player = self._players.get(uid(pod))
            if player:
                player.nudge()

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if node is None:
            if was:
                self.hosts.pop(name(was), None)
            return
        if name(node) not in self.hosts:
            self.hosts[name(node)] = host_of(node)
            for pod in self._world[POD].by("node", name(node)):
                self._take(pod)
        self._world.loop.soon(self._nudge, name(node))

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        if pod is None:
            if was:
                self._drop(uid(was))
                self._ending.discard(uid(was))
        elif node_of(pod):
            self._take(pod)
        for node_name in {node_of(each) for each in (was, pod) if each} - {""}:
            self._world.loop.soon(self._nudge, node_name)

    def _take(self, pod: Obj) -> None:
        if is_terminating(pod):
            self._world.loop.soon(self.end, uid(pod))
        elif uid(pod) not in self._players and not is_true(pod, "Ready") and not is_finished(pod):
            self._world.loop.soon(self.begin, uid(pod))
