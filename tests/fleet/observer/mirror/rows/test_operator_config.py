"""ConfigMaps as NVIDIA documents them.

Time-slicing: docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html. MIG: gpu-operator,
assets/state-mig-manager/0400_configmap.yaml.
"""

import msgspec
import pytest

from fleet.observer.mirror.rows.operator_config import config_row
from fleet.observer.mirror.watch_scope import MIG, SHARING, WatchScope
from kube.structs import ConfigMapSeen

SCOPE = WatchScope(configs={SHARING: "time-slicing-config-fine", MIG: "default-mig-parted-config"})
A100 = """version: v1
flags:
  migStrategy: mixed
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 8
"""
PARTED = """version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false

  # H100-80GB, A100-80GB
  "all-1g.10gb":
    - devices: all
      mig-enabled: true
      mig-devices:
        "1g.10gb": 7
  all-balanced:  # every board its own way
    # A100-40GB
    - device-filter: ["0x20B010DE", "0x20B110DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.5gb": 2
gpu-clients:
  not: an entry
"""


def a_config_map(name: str, data: dict[str, str] | None) -> ConfigMapSeen:
    metadata = {"name": name, "namespace": "gpu-operator", "uid": f"uid-of-{name}"}
    return msgspec.convert({"metadata": metadata, "data": data}, ConfigMapSeen)


def test_sharing_has_an_entry_for_each_file():
    row = config_row(
        a_config_map("time-slicing-config-fine", {"a100-40gb": A100, "any": "version: v1"}), SCOPE, SHARING
    )

    assert (row["purpose"], row["entries"]) == ("sharing", {"a100-40gb": A100, "any": "version: v1"})


def test_mig_has_its_entries_in_one_file_and_each_stays_as_it_was_written():
    row = config_row(a_config_map("default-mig-parted-config", {"config.yaml": PARTED}), SCOPE, MIG)

    assert list(row["entries"]) == ["all-disabled", "all-1g.10gb", "all-balanced"]
    assert row["entries"]["all-1g.10gb"].endswith('mig-devices:\n        "1g.10gb": 7')
    assert "0x20B010DE" in row["entries"]["all-balanced"]
    assert "not: an entry" not in row["entries"]["all-balanced"]


@pytest.mark.parametrize("purpose", [SHARING, MIG])
def test_another_config_map_is_never_kept_whatever_sends_it(purpose):
    password = a_config_map("somebody-elses", {"config.yaml": "mig-configs:\n  password: swordfish"})

    assert config_row(password, SCOPE, purpose) is None
    assert config_row(password, WatchScope(), purpose) is None


def test_one_without_entries_is_there_and_empty():
    assert config_row(a_config_map("default-mig-parted-config", None), SCOPE, MIG)["entries"] == {}
    assert config_row(a_config_map("default-mig-parted-config", {"x": "mig-configs:\n"}), SCOPE, MIG)["entries"] == {}
