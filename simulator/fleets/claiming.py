"""DRA as it is when everything has long been settled: slices, classes, templates, and claims that pods hold."""

from collections import defaultdict
from collections.abc import Callable

from simulator.actors.dra import requests
from simulator.actors.dra.api import Api
from simulator.actors.dra.requests import Device
from simulator.actors.dra.slices import resource_slice
from simulator.actors.gpu_operator import keys
from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, name, namespace, spec
from simulator.fleets.dra_operands import VALIDATOR_CLAIM, VALIDATOR_TEMPLATE
from simulator.fleets.tenants import Workload
from simulator.kinds import Kind

Put = Callable[[Kind, Obj], Obj]
NewName = Callable[[str], str]


class Claiming:
    def __init__(self, api: Api, put: Put, new_name: NewName) -> None:
        self._api = api
        self._put = put
        self._new_name = new_name
        self._templates: dict[tuple[str, str], Obj] = {}
        self._devices: dict[str, list[Device]] = {}
        self._given: dict[str, int] = defaultdict(int)

    def plant_classes(self) -> None:
        for each in requests.device_classes(self._api):
            self._put(self._api.device_class, each)

    def plant_validator_template(self) -> None:
        self._template(VALIDATOR_TEMPLATE, keys.NAMESPACE, request=VALIDATOR_CLAIM, count=1, is_admin=True)

    def plant_template(self, workload: Workload) -> None:
        self._template(workload.name, workload.namespace, request="gpus", count=workload.gpus)

    def _template(self, called: str, where: str, *, request: str, count: int, is_admin: bool = False) -> None:
        made = requests.template(self._api, called, where, request=request, count=count, is_admin=is_admin)
        self._templates[where, called] = self._put(self._api.template, made)

    def plant_slice(self, node: Obj, host: Host) -> None:
        made = resource_slice(self._api, node, host, gpus=range(host.gpus), generation=1)
        made["metadata"]["name"] = self._new_name(made["metadata"].pop("generateName"))
        self._put(self._api.slice, made)
        self._devices[name(node)] = [(name(node), device["name"]) for device in made["spec"]["devices"]]

    def names(self, pod: Obj) -> list[Obj]:
        """For the status of a pod that is about to be planted."""
        called = name(pod)
        return [
            {"name": asked["name"], "resourceClaimName": self._new_name(f"{called}-{asked['name']}-")}
            for asked in requests.asked_by(pod)
        ]

    def plant_claims(self, pod: Obj, node_name: str) -> None:
        known = requests.claim_names(pod)
        for asked in requests.asked_by(pod):
            made_from = self._templates[namespace(pod), asked["resourceClaimTemplateName"]]
            claim = requests.claim_for(self._api, pod, asked["name"], made_from)
            claim["metadata"].pop("generateName")
            claim["metadata"]["name"] = known[asked["name"]]
            claim["metadata"]["creationTimestamp"] = pod["metadata"]["creationTimestamp"]
            devices = self._take(claim, node_name)
            self._put(
                self._api.claim, {**claim, "status": requests.allocation(self._api, claim, devices, node_name, pod)}
            )

    def _take(self, claim: Obj, node_name: str) -> list[Device]:
        count = requests.count(self._api, claim)
        if requests.is_looking(self._api, claim):
            return self._devices[node_name][:count]
        begin = self._given[node_name]
        self._given[node_name] += count
        return self._devices[node_name][begin : begin + count]


def is_claiming(pod: Obj) -> bool:
    return bool(spec(pod).get("resourceClaims"))
