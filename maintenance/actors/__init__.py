"""The actors that repair nodes: one file each, and one line here."""

from collections.abc import Mapping

from maintenance.actors.base import RepairActor
from maintenance.actors.metal3_reboot import Metal3Reboot
from maintenance.actors.nvsentinel_gpu_reset import NvsentinelGpuReset
from maintenance.actors.nvsentinel_reboot import NvsentinelReboot
from maintenance.actors.person import Person
from maintenance.actors.webhook import WebhookActor

ACTORS: Mapping[str, RepairActor] = {
    actor.key: actor for actor in (Person(), NvsentinelReboot(), NvsentinelGpuReset(), Metal3Reboot(), WebhookActor())
}
