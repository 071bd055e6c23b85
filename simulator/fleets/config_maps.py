"""The ConfigMaps that nodes pick an entry of: how GPUs are shared, and how they are cut."""

from typing import Any

from simulator.actors import mig
from simulator.actors.gpu_operator import keys
from simulator.actors.sharing import CONFIG_MAP, PLUGIN_CONFIGS

Obj = dict[str, Any]
MIG_CONFIG_MAP = "default-mig-parted-config"


def config_maps() -> list[Obj]:
    sharing = {name: config.as_yaml() for name, config in PLUGIN_CONFIGS.items()}
    return [_config_map(CONFIG_MAP, sharing), _config_map(MIG_CONFIG_MAP, {"config.yaml": mig.as_yaml()})]


def _config_map(called: str, entries: dict[str, str]) -> Obj:
    metadata = {"name": called, "namespace": keys.NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": entries}
