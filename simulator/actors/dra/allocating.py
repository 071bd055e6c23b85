"""Pods with claims: the claims are made, devices are given, and the pod is bound where they are.

The resource claim controller and the scheduler's DRA plugin in one; of a pod's claims each asks for whole devices.
"""

from simulator.actors import fits
from simulator.actors.dra import requests
from simulator.actors.dra.api import Api
from simulator.actors.dra.requests import Device
from simulator.actors.objects import (
    Key,
    Obj,
    by_age,
    condition,
    is_active,
    is_finished,
    key,
    name,
    namespace,
    node_of,
    owners,
    spec,
    uid,
)
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.kinds import NODE, POD

SOURCE = "default-scheduler"
NO_DEVICE = "cannot allocate all claims"


class Allocating:
    def __init__(self, world: World, api: Api) -> None:
        self._world = world
        self._api = api
        self._waiting: set[Key] = set()
        world[api.claim].index("owner", _owner)
        world[POD].on_change(self._pod_changed)
        for kind in (api.claim, api.template, api.slice, NODE):
            world[kind].on_change(lambda _was, _is: self._soon())

    def schedule(self) -> None:
        """The oldest first."""
        found = (self._world[POD].objects.get(at) for at in self._waiting)
        for pod in by_age(pod for pod in found if pod is not None):
            claims = self._claims(pod)
            if claims is not None:
                self._place(pod, claims)

    def release(self, pod_uid: str) -> None:
        """Claims that were made for a pod end with it."""
        for claim in self._world[self._api.claim].by("owner", pod_uid):
            self._world.delete(self._api.claim, claim)

    def _claims(self, pod: Obj) -> list[Obj] | None:
        """None: not all of them are there yet."""
        known = requests.claim_names(pod)
        for asked in requests.asked_by(pod):
            if asked["name"] not in known and asked.get("resourceClaimTemplateName"):
                self._make(pod, asked)
                return None
        names = [known.get(asked["name"]) or asked.get("resourceClaimName", "") for asked in requests.asked_by(pod)]
        held = [self._world[self._api.claim].get(called, namespace(pod)) for called in names]
        return None if None in held else [claim for claim in held if claim is not None]

    def _make(self, pod: Obj, asked: Obj) -> None:
        made_from = self._world[self._api.template].get(asked["resourceClaimTemplateName"], namespace(pod))
        if made_from is None:
            return
        wanted = requests.claim_for(self._api, pod, asked["name"], made_from)
        claim = self._world.create(self._api.claim, wanted, namespace(pod))
        told = [{"name": entry, "resourceClaimName": of} for entry, of in requests.claim_names(pod).items()]
        told.append({"name": asked["name"], "resourceClaimName": name(claim)})
        self._world.patch_status(POD, pod, {"resourceClaimStatuses": told})

    def _place(self, pod: Obj, claims: list[Obj]) -> None:
        for node in self._candidates(pod):
            given = self._given(name(node), claims)
            if given is None:
                continue
            for claim, devices in zip(claims, given, strict=True):
                told = requests.allocation(self._api, claim, devices, name(node), pod)
                self._world.patch_status(self._api.claim, claim, told)
            self._world.bind(pod, name(node))
            message = f"Successfully assigned {namespace(pod)}/{name(pod)} to {name(node)}"
            self._world.events.normal(pod, "Pod", "Scheduled", message, source=SOURCE)
            return
        self._tell(pod)

    def _candidates(self, pod: Obj) -> list[Obj]:
        pinned = fits.pinned_node(pod)
        nodes = [self._world[NODE].get(pinned)] if pinned else list(self._world[NODE].all())
        tolerated = spec(pod).get("tolerations") or []
        return [node for node in nodes if node and fits.selects(spec(pod), node) and not _keeps_away(node, tolerated)]

    def _given(self, node_name: str, claims: list[Obj]) -> list[list[Device]] | None:
        """Devices of this node for each claim; None: there are not enough."""
        offered = self._devices(node_name)
        free = [device for device in offered if device not in self._taken()]
        given: list[list[Device]] = []
        for claim in claims:
            count, source = requests.count(self._api, claim), offered if self._is_looking(claim) else free
            if len(source) < count:
                return None
            given.append(source[:count])
            if source is free:
                free = free[count:]
        return given

    def _is_looking(self, claim: Obj) -> bool:
        return requests.is_looking(self._api, claim)

    def _devices(self, node_name: str) -> list[Device]:
        held = self._world[self._api.slice].by("nodeName", node_name)
        return [(spec(each)["pool"]["name"], device["name"]) for each in held for device in spec(each)["devices"]]

    def _taken(self) -> set[Device]:
        return {device for claim in self._world[self._api.claim].all() for device in requests.taken(claim)}

    def _tell(self, pod: Obj) -> None:
        total = len(self._world[NODE].objects)
        why = f"0/{total} nodes are available: {total} {NO_DEVICE}. "
        why += f"preemption: 0/{total} nodes are available: {total} Preemption is not helpful for scheduling."
        if condition(pod, "PodScheduled").get("message") == why:
            return
        told = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastProbeTime": None,
            "lastTransitionTime": stamp(self._world.loop.clock.now()),
        }
        self._world.patch_status(POD, pod, {"conditions": [told]})
        self._world.events.warning(pod, "Pod", "FailedScheduling", why, source=SOURCE)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        if seen is None or not requests.asked_by(seen):
            return
        if pod and is_active(pod) and not node_of(pod):
            self._waiting.add(key(pod))
        else:
            self._waiting.discard(key(seen))
        if pod is None or is_finished(pod):
            self._world.loop.soon(self.release, uid(seen))
        self._soon()

    def _soon(self) -> None:
        if self._waiting:
            self._world.loop.soon(self.schedule)


def _owner(claim: Obj) -> str:
    return str(owners(claim)[0]["uid"]) if owners(claim) else ""


def _keeps_away(node: Obj, tolerated: list[Obj]) -> bool:
    return fits.untolerated(node, tolerated) is not None
