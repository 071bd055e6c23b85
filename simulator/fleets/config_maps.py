"""The ConfigMaps that operands read: how GPUs are shared, how they are cut, and what is counted."""

from typing import Any

from simulator.actors import mig
from simulator.actors.exporting.counters import NVLINK, Choice, file_of
from simulator.actors.exporting.settings import CUSTOM_FILE
from simulator.actors.gpu_operator import keys
from simulator.actors.sharing import CONFIG_MAP, PLUGIN_CONFIGS
from simulator.fleets.exporters import MONITORING, OWN_CONFIG_MAP

Obj = dict[str, Any]
MIG_CONFIG_MAP = "default-mig-parted-config"
METRICS_CONFIG_MAP = "dcgm-metrics-config"


def own_metrics() -> Obj:
    """Of the exporter that its own chart has installed: of a time when NVLink's rate was called a counter."""
    written = file_of(Choice.UNPROFILED).replace(f"{NVLINK},            gauge,  ", f"{NVLINK},            counter,")
    return _config_map(OWN_CONFIG_MAP, {CUSTOM_FILE: written}, MONITORING)


def config_maps(counters: Choice) -> list[Obj]:
    sharing = {name: config.as_yaml() for name, config in PLUGIN_CONFIGS.items()}
    found = [_config_map(CONFIG_MAP, sharing), _config_map(MIG_CONFIG_MAP, {"config.yaml": mig.as_yaml()})]
    written = file_of(counters)
    return [*found, *([_config_map(METRICS_CONFIG_MAP, {CUSTOM_FILE: written})] if written else [])]


def _config_map(called: str, entries: dict[str, str], where: str = keys.NAMESPACE) -> Obj:
    metadata = {"name": called, "namespace": where}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": entries}
