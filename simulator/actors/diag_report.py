"""What `dcgmi diag` prints: its table, or with `--json` the report of DCGM 4 on one line, as our test Jobs ask for it.

NVIDIA/DCGM, testing/python3/dcgm_diag_schema.json, and docs.nvidia.com dcgm-diagnostics.
"""

import json

from simulator.actors.objects import Obj

TABLE = (
    "Successfully ran diagnostic for group.",
    "| Software                  | Pass                                           |",
    "| PCIe                      | Pass - All                                     |",
    "| GPU Memory                | Pass - All                                     |",
    "| Targeted Stress           | Pass - All                                     |",
)
CATEGORIES = {
    "Deployment": ("software",), "Hardware": ("memory", "pcie"), "Stress": ("targeted_stress", "targeted_power"),
}  # fmt: skip
GPU_RESOURCE = "nvidia.com/gpu"


def runs_diag(pod: Obj, container: str) -> bool:
    return any("dcgmi diag" in part for part in _command(pod, container))


def diag_lines(pod: Obj, container: str) -> list[str]:
    """Returns what a diagnostic prints that passes on all GPUs of the container."""
    if not any("--json" in part for part in _command(pod, container)):
        return list(TABLE)
    (limits,) = [each["resources"]["limits"] for each in pod["spec"]["containers"] if each["name"] == container]
    return [json.dumps(report(int(limits.get(GPU_RESOURCE, 1))))]


def report(gpus: int, *, failing: int | None = None) -> Obj:
    """`failing`: a GPU whose memory fails."""
    categories = [
        {"category": category, "tests": [_test(test, gpus, failing) for test in tests]}
        for category, tests in CATEGORIES.items()
    ]
    entities = [{"entity_id": gpu, "device_id": "2330", "serial_num": f"16539230{gpu:05}"} for gpu in range(gpus)]
    return {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1, "entities": entities}],
        "metadata": {"version": "4.3.1", "Driver Version Detected": "580.95.05"},
    }


def _test(test: str, gpus: int, failing: int | None) -> Obj:
    results = []
    for gpu in range(gpus):
        result: Obj = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": "Pass"}
        if test == "memory" and gpu == failing:
            error = f"GPU {gpu} had uncorrectable memory errors and row remapping failed."
            warning = {"error_category": 7, "error_id": 83, "error_severity": 2, "warning": error}
            result |= {"status": "Fail", "warnings": [warning]}
        results.append(result)
    is_failed = any(result["status"] == "Fail" for result in results)
    return {"name": test, "results": results, "test_summary": {"status": "Fail" if is_failed else "Pass"}}


def _command(pod: Obj, container: str) -> list[str]:
    return [
        part for each in pod["spec"]["containers"] if each["name"] == container for part in each.get("command") or ()
    ]
