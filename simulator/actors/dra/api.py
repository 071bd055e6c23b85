"""The group's kinds in the version that is served, and what that version nests elsewhere (k8s.io/api/resource)."""

from dataclasses import dataclass, replace
from typing import Any

from simulator.actors.objects import Obj
from simulator.kinds import CLAIM_TEMPLATE, DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, Kind, ResourceApi


@dataclass(frozen=True, slots=True)
class Api:
    version: ResourceApi = ResourceApi.V1

    @property
    def api_version(self) -> str:
        return f"resource.k8s.io/{self.version}"

    @property
    def is_flat(self) -> bool:
        """Devices without `basic`, and requests with `exactly`."""
        return self.version is not ResourceApi.V1BETA1

    @property
    def slice(self) -> Kind:
        return self._served(RESOURCE_SLICE)

    @property
    def claim(self) -> Kind:
        return self._served(RESOURCE_CLAIM)

    @property
    def template(self) -> Kind:
        return self._served(CLAIM_TEMPLATE)

    @property
    def device_class(self) -> Kind:
        return self._served(DEVICE_CLASS)

    def _served(self, kind: Kind) -> Kind:
        return replace(kind, version=str(self.version))

    def device(self, name: str, about: Obj) -> Obj:
        """v1beta1 has attributes and capacity under `basic`."""
        return {"name": name, **about} if self.is_flat else {"name": name, "basic": about}

    def request(self, name: str, wanted: Obj) -> Obj:
        """v1 has the class and the count under `exactly`."""
        return {"name": name, "exactly": wanted} if self.is_flat else {"name": name, **wanted}

    def wanted(self, request: Obj) -> Obj:
        exactly: Any = request.get("exactly")
        return request if exactly is None else exactly

    def about(self, device: Obj) -> Obj:
        basic: Any = device.get("basic")
        return device if basic is None else basic
