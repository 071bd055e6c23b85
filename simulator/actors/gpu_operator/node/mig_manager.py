"""The MIG manager: a node asks by label, its GPUs are cut, and another label says how far that is.

mig-parted pkg/mig/reconfigure: operands that use GPUs are paused by their labels meanwhile; tenants are left alone, and
while one of them holds a GPU the new cut fails (or, with WITH_REBOOT, the node is rebooted to change the mode). Where
it gives up while it stops operands it leaves all as it is, and waits for another label (gpu-operator #2833).
"""

from simulator.actors import apps, mig
from simulator.actors.dra.holding import holds_devices
from simulator.actors.durations import Durations
from simulator.actors.gpu_operator.active import active_policy
from simulator.actors.kubelet.host import MIG_CONFIG, MIG_STATE, Host
from simulator.actors.kubelet.reboot import Reboots
from simulator.actors.kubelet.script import Player, Script, Wait
from simulator.actors.objects import Obj, is_finished, is_true, labels, name, node_of, spec
from simulator.actors.skus import SKUS
from simulator.actors.world import World
from simulator.faults import Board, StuckMigChange
from simulator.kinds import NODE, POD
from simulator.quantities import wants_gpu

PAUSED = "paused-for-mig-change"
CLIENTS = (apps.DEVICE_PLUGIN, apps.GFD, apps.DCGM_EXPORTER, apps.DCGM)
GONE_WITHIN_S = 300
LOOK_S = 1


class MigManagers:
    def __init__(
        self, world: World, hosts: dict[str, Host], durations: Durations, reboots: Reboots, faults: Board
    ) -> None:
        self._world = world
        self._hosts = hosts
        self._durations = durations
        self._reboots = reboots
        self._faults = faults
        self._tried: dict[str, str] = {}  # by node: the configuration that was last tried
        self._busy: set[str] = set()
        world[NODE].on_change(self._node_changed)
        world[POD].on_change(self._pod_changed)

    def look(self, node_name: str) -> None:
        node, host = self._world[NODE].get(node_name), self._hosts.get(node_name)
        if node is None or host is None or node_name in self._busy or not self._is_running(node_name):
            return
        asked = labels(node).get(MIG_CONFIG, "")
        if not asked or asked == self._tried.get(node_name, host.mig):
            return
        self._tried[node_name] = asked
        self._busy.add(node_name)
        Player(self._world.loop, self._reconfigure(host, asked)).step()

    def _reconfigure(self, host: Host, asked: str) -> Script:
        if asked in mig.NAMES and asked == host.mig:
            self._say(host, "success")
        elif not _is_possible(host, asked):
            self._say(host, "failed")
        else:
            self._say(host, "pending", paused=True)
            if not self._gives_up(host):
                yield from self._wait_for_clients(host)
                yield Wait(self._durations.mig_apply)
                yield from self._apply(host, asked)
        self._busy.discard(host.name)
        self._world.loop.soon(self.look, host.name)

    def _gives_up(self, host: Host) -> bool:
        return any(fault.node == host.name for fault in self._faults.active(StuckMigChange))

    def _wait_for_clients(self, host: Host) -> Script:
        for _ in range(GONE_WITHIN_S // LOOK_S):
            if not any(labels(pod).get("app") in CLIENTS for pod in self._world[POD].by("node", host.name)):
                return
            yield Wait(LOOK_S)

    def _apply(self, host: Host, asked: str) -> Script:
        holders = self._holders(host.name)
        if holders and not (self._may_reboot() and _changes_mode(host, asked)):
            self._say(host, "failed", paused=False)
            return
        if holders:
            self._say(host, "rebooting")
            yield from self._reboots.run(host.name, holders)
        host.mig = asked
        for pod in self._world[POD].by("node", host.name):
            if labels(pod).get("app") == apps.VALIDATOR:
                self._world.delete(POD, pod)
        self._say(host, "success", paused=False)

    def _say(self, host: Host, state: str, *, paused: bool | None = None) -> None:
        """The state, and with it the clients' labels: `false` stays false, None leaves them as they are."""
        node = self._world[NODE].get(host.name)
        if node is None:
            return
        wanted = {MIG_STATE: state}
        if paused is not None:
            gates = (apps.GATES[app] for app in CLIENTS)
            value = PAUSED if paused else "true"
            wanted |= {gate: value for gate in gates if labels(node).get(gate, "false") != "false"}
        self._world.patch(NODE, node, {"metadata": {"labels": wanted}})

    def _holders(self, node_name: str) -> list[Obj]:
        pods = self._world[POD].by("node", node_name)
        return [pod for pod in pods if not is_finished(pod) and (wants_gpu(pod) or holds_devices(self._world, pod))]

    def _may_reboot(self) -> bool:
        policy = active_policy(self._world)
        env = (spec(policy).get("migManager") or {}).get("env") or [] if policy else []
        return any(each.get("name") == "WITH_REBOOT" and each.get("value") == "true" for each in env)

    def _is_running(self, node_name: str) -> bool:
        pods = self._world[POD].by("node", node_name)
        return any(labels(pod).get("app") == apps.MIG and is_true(pod, "Ready") for pod in pods)

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if node and was and labels(was).get(MIG_CONFIG) != labels(node).get(MIG_CONFIG):
            self._tried.pop(name(node), None)
            self._world.loop.soon(self.look, name(node))

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        if pod is not None and was is not None and labels(pod).get("app") == apps.MIG and node_of(pod):
            self._world.loop.soon(self.look, node_of(pod))


def _is_possible(host: Host, asked: str) -> bool:
    """Is it in the file, and has this model such profiles?"""
    if asked not in mig.NAMES or host.model not in SKUS:
        return False
    return set(mig.instances(mig.layout(asked, host.gpus))) <= set(mig.PROFILES.get(SKUS[host.model].family, {}))


def _changes_mode(host: Host, asked: str) -> bool:
    return [cut is None for cut in host.layout] != [cut is None for cut in mig.layout(asked, host.gpus)]
