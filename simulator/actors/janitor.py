"""NVSentinel's janitor: it reboots the node that a RebootNode names, and reports when the node is Ready again."""

from typing import Any
from uuid import uuid4

from simulator.actors.kubelet.reboot import Reboots
from simulator.actors.kubelet.script import Player, Script, Wait
from simulator.actors.objects import Obj, name, status, uid
from simulator.actors.repairers import GPU_RESET, REBOOT_NODE
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.kinds import NODE, Kind

RESET_S = 60.0  # cluster time


class Janitor:
    def __init__(self, world: World, reboots: Reboots) -> None:
        self._world, self._reboots = world, reboots
        self._begun: set[str] = set()
        world[REBOOT_NODE].on_change(lambda _was, asked: self._take(asked, self._reboot))
        world[GPU_RESET].on_change(lambda _was, asked: self._take(asked, self._reset))

    def _take(self, asked: Obj | None, script: Any) -> None:
        if asked is not None and uid(asked) not in self._begun and not status(asked).get("completionTime"):
            self._begun.add(uid(asked))
            self._world.loop.soon(self._play, script, name(asked))

    def _play(self, script: Any, asked: str) -> None:
        Player(self._world.loop, script(asked)).step()

    def _reboot(self, asked: str) -> Script:
        obj = self._world[REBOOT_NODE].get(asked)
        if obj is None:
            return
        write_conditions(self._world, REBOOT_NODE, asked, SignalSent=("True", "Succeeded", f"reboot-{uid(obj)[:8]}"))
        yield from self._reboots.run(obj["spec"]["nodeName"], [])
        node = self._world[NODE].get(obj["spec"]["nodeName"])
        if node is not None:
            self._world.patch_status(NODE, node, {"nodeInfo": {"bootID": str(uuid4())}})
        self._end(REBOOT_NODE, asked, NodeReady=("True", "Succeeded", "Node is ready"))

    def _reset(self, asked: str) -> Script:
        yield Wait(RESET_S)
        self._end(GPU_RESET, asked, Complete=("True", "Succeeded", "GPU reset is complete"))

    def _end(self, kind: Kind, asked: str, **conditions: tuple[str, str, str]) -> None:
        ended = {"completionTime": stamp(self._world.loop.clock.now())}
        write_conditions(self._world, kind, asked, ended, **conditions)


def write_conditions(
    world: World, kind: Kind, asked: str, more: Obj | None = None, **conditions: tuple[str, str, str]
) -> None:
    there = world[kind].get(asked)
    if there is None:  # whoever asked took it back
        return
    kept = [each for each in status(there).get("conditions", []) if each["type"] not in conditions]
    at = stamp(world.loop.clock.now())
    new = [
        {"type": key, "status": value, "reason": reason, "message": message, "lastTransitionTime": at}
        for key, (value, reason, message) in conditions.items()
    ]
    world.patch_status(kind, there, {"conditions": [*kept, *new], **(more or {})})
