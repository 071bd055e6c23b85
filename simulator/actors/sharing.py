"""The device plugin's configurations: what the label `nvidia.com/device-plugin.config` of a node picks one of."""

from dataclasses import dataclass
from enum import StrEnum

CONFIG_LABEL = "nvidia.com/device-plugin.config"
CONFIG_MAP = "device-plugin-config"
DEFAULT = "default"


class Strategy(StrEnum):
    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"


class MigStrategy(StrEnum):
    NONE = "none"
    SINGLE = "single"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """`is_renamed`: renameByDefault, which offers `nvidia.com/gpu.shared` and keeps the product's name."""

    strategy: Strategy = Strategy.NONE
    replicas: int = 1
    is_renamed: bool = False
    mig_strategy: MigStrategy = MigStrategy.SINGLE

    @property
    def is_shared(self) -> bool:
        return self.replicas > 1

    @property
    def needs_daemon(self) -> bool:
        """MPS needs its control daemon on the node."""
        return self.strategy is Strategy.MPS

    def as_yaml(self) -> str:
        lines = ["version: v1", "flags:", f"  migStrategy: {self.mig_strategy}"]
        if self.is_shared:
            member = "timeSlicing" if self.strategy is Strategy.TIME_SLICING else "mps"
            lines += ["sharing:", f"  {member}:", f"    renameByDefault: {str(self.is_renamed).lower()}"]
            lines += ["    resources:", "    - name: nvidia.com/gpu", f"      replicas: {self.replicas}"]
        return "\n".join(lines) + "\n"


PLUGIN_CONFIGS = {
    DEFAULT: PluginConfig(),
    "time-slicing-4": PluginConfig(Strategy.TIME_SLICING, 4),
    "time-slicing-4-renamed": PluginConfig(Strategy.TIME_SLICING, 4, is_renamed=True),
    "mps-10": PluginConfig(Strategy.MPS, 10),
    "mig-mixed": PluginConfig(mig_strategy=MigStrategy.MIXED),
}


def config_of(labels: dict[str, str]) -> PluginConfig:
    """An entry that is not there: the plugin's config manager keeps waiting, and what ran before runs on."""
    return PLUGIN_CONFIGS.get(labels.get(CONFIG_LABEL, DEFAULT), PLUGIN_CONFIGS[DEFAULT])
