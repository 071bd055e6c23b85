"""A machine that is started anew: silent for a while, then back without the devices that its pods had held."""

from collections.abc import Mapping

from simulator.actors.durations import Durations
from simulator.actors.kubelet.heartbeat import Heartbeats
from simulator.actors.kubelet.host import Host
from simulator.actors.kubelet.readiness import GONE, WELL, say
from simulator.actors.kubelet.sandbox import rejected
from simulator.actors.kubelet.script import Script, Wait
from simulator.actors.objects import Obj, uid
from simulator.actors.world import World
from simulator.faults.board import Board
from simulator.kinds import POD

NO_DEVICES = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, "


class Reboots:
    def __init__(
        self, world: World, hosts: Mapping[str, Host], heartbeats: Heartbeats, durations: Durations, faults: Board
    ) -> None:
        self._world = world
        self._hosts = hosts
        self._faults = faults
        self._heartbeats = heartbeats
        self._durations = durations

    def run(self, node_name: str, holders: list[Obj]) -> Script:
        """`holders`: pods whose devices will be others."""
        self._heartbeats.silence(node_name, is_silent=True)
        say(self._world, node_name, GONE)
        yield Wait(self._durations.reboot)
        self._faults.reboot(node_name)
        if (host := self._hosts.get(node_name)) is not None:
            host.boot()
        self._heartbeats.silence(node_name, is_silent=False)
        say(self._world, node_name, WELL)
        now = self._world.loop.clock.now()
        for pod in holders:
            held = self._world[POD].of_uid(uid(pod))
            if held is not None:
                words = NO_DEVICES + "which is unexpected"
                self._world.patch_status(POD, held, rejected(held, "UnexpectedAdmissionError", words, now))
