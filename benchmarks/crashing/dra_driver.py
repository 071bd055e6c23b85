"""NVIDIA's DRA driver on the nodes that are told to run it: what it sees there stands in a ResourceSlice."""

from dataclasses import dataclass, replace

from benchmarks.crashing.line import Line
from benchmarks.crashing.nodes_seen import offered_in
from simulator.actors.dra.api import Api
from simulator.actors.dra.slices import resource_slice
from simulator.actors.kubelet.host import host_of
from simulator.actors.objects import Obj, labels, name, spec, uid
from simulator.fleets.machines import CLAIMS_LABEL
from simulator.kinds import NODE, RESOURCE_SLICE

ME = "gpu-kubelet-plugin"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MODEL, GPUS = "NVIDIA-H100-80GB-HBM3", 1  # of a node: more would only take time


@dataclass
class DraDriver:
    line: Line

    def offered(self) -> dict[str, str]:
        """Node → the driver that its ResourceSlice names."""
        return {spec(one)["nodeName"]: offered_in(one) for one in self._slices()}

    def offer(self, called: str, version: str) -> bool:
        """Its pod here publishes what it sees. `version` blank: no device. Whether there is such a pod."""
        node = self.line.store.get(NODE, called)
        if CLAIMS_LABEL not in labels(node):
            return False
        host = replace(host_of(node), driver=version, model=MODEL, gpus=GPUS)  # one that joins says of itself nothing
        held = next((one for one in self._slices() if spec(one)["nodeName"] == called), None)
        generation = spec(held)["pool"]["generation"] + 1 if held else 1
        made = resource_slice(Api(), node, host, gpus=range(GPUS if version else 0), generation=generation)
        if held:
            self.line.notify(ME, "PATCH", f"{SLICES}/{name(held)}", {"spec": made["spec"]})
        else:
            made["metadata"] = {**made["metadata"], "name": f"{called}-{generation}"}
            self.line.notify(ME, "POST", SLICES, made)
        return True

    def collect(self) -> None:
        """The garbage collector takes slices whose node is gone; of one that was made anew there is a new slice."""
        slices = self._slices()
        nodes = {name(node): node for node in self.line.store.list(NODE)[0]} if slices else {}
        for held in slices:
            node = nodes.get(on := spec(held)["nodeName"])
            if node is None or held["metadata"]["ownerReferences"][0]["uid"] != uid(node):
                self.line.store.delete(RESOURCE_SLICE, name(held))
                if node is not None:
                    self.offer(on, offered_in(held))

    def _slices(self) -> list[Obj]:
        return self.line.store.list(RESOURCE_SLICE)[0]
