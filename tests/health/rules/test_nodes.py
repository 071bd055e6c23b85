from dataclasses import replace

import pytest

from gpu.conditions import read_condition
from health.rules import RULES
from health.rules.base import NODE, Blocker, ClusterFacts, NodeCondition, NodeFacts, Severity
from health.rules.device_unhealthy import DeviceUnhealthy
from health.rules.exporter_silent import ExporterSilent
from health.rules.node_conditions import NodeConditions
from health.rules.node_flapping import NodeFlapping
from health.rules.node_not_ready import NodeNotReady
from health.rules.operand_down import OperandDown
from health.rules.paused_operands import PausedOperands
from health.rules.telemetry_silent import TelemetrySilent
from health.rules.upgrade_failed import UpgradeFailed
from health.rules.upgrade_queue_still import UpgradeQueueStill
from health.rules.upgrade_stuck import UpgradeStuck
from tests.make import NOON
from tests.reports import causes, steps, told

GPU = "nvidia.com/gpu"
WELL = NodeFacts("gpu-001", allocatable={GPU: 8}, capacity={GPU: 8}, expected={GPU: 8}, requested={GPU: 8})


def a_condition(name: str, status: str = "True", reason: str = "", message: str = "It is so.") -> NodeCondition:
    """As the row of its node has it."""
    told = read_condition(name, status, reason, message)
    message, severity = f"{reason}: {message}" if reason else message, Severity(told.severity)
    return NodeCondition(name, message, status, told.reporter, severity, told.action, told.xids)


def with_conditions(*types: str, **given) -> NodeFacts:
    return replace(WELL, conditions=tuple(map(a_condition, types)), **given)


def test_a_node_that_is_well_is_well():
    assert [rule.evaluate(WELL) for rule in RULES if rule.subject == NODE] == [None] * len(
        [rule for rule in RULES if rule.subject == NODE]
    )


def test_not_ready_and_not_reporting_are_two_things():
    not_ready = NodeNotReady().evaluate(replace(WELL, is_ready=False, not_ready_reason="KubeletNotReady: PLEG"))
    silent = NodeNotReady().evaluate(replace(WELL, is_ready=None, is_unreported=True))

    assert not_ready.title == "Node gpu-001 is not ready"
    assert "Reason: KubeletNotReady: PLEG" in told(not_ready)
    assert silent.title == "Kubelet of gpu-001 stopped reporting"


def test_a_runtime_that_does_not_answer_after_a_boot_is_named():
    wrong = NodeNotReady().evaluate(
        replace(WELL, is_ready=False, not_ready_reason="KubeletNotReady: container runtime is down")
    )

    assert "wrong order" in causes(wrong)


def test_a_boot_that_was_seen_is_named_with_its_time():
    booted = replace(WELL, is_ready=False, not_ready_reason="container runtime is down", booted_at=NOON)
    racing = with_conditions("FrequentContainerdRestart", booted_at=NOON)

    for wrong in (NodeNotReady().evaluate(booted), NodeConditions().evaluate(racing)):
        assert "The node booted at 2026-11-21 12:00 UTC" in causes(wrong)
    assert "After a boot" in causes(NodeNotReady().evaluate(replace(booted, booted_at=None)))


def test_a_node_that_autopilot_evicts_keeps_its_label_until_the_diagnostics_pass():
    said = "DCGM level 3: ERR_2024-11-04_09.32.03UTC_page_retirement_row_remap.0"
    evicted = replace(WELL, conditions=(a_condition("autopilot.ibm.com/gpuhealth", "EVICT", message=said),))

    wrong = NodeConditions().evaluate(evicted)

    assert (wrong.title, wrong.severity) == ("autopilot.ibm.com/gpuhealth=EVICT on gpu-001", Severity.CRITICAL)
    assert said in wrong.summary
    assert "stays at EVICT until they pass" in steps(wrong)
    assert "kubectl describe node" not in steps(wrong)


def test_what_nvsentinel_says_is_critical_and_what_the_kubelet_says_a_warning():
    assert NodeConditions().evaluate(with_conditions("GpuMemWatch")).severity == Severity.CRITICAL
    assert NodeConditions().evaluate(with_conditions("DiskPressure")).severity == Severity.WARNING


IMEX = (
    "ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:0 PCI:0000:9d:00.0 GPU_UUID:GPU-bb3e1419-0000-4000-8000-000000000000 IMEX "
    "daemon status is -3 (not READY) Recommended Action={};"
)


def evaluated(*conditions: NodeCondition):
    return NodeConditions().evaluate(replace(WELL, conditions=conditions))


def test_imex_on_one_machine_asks_for_no_repair():
    wrong = evaluated(a_condition("GpuNvlinkWatch", message=IMEX.format("CONTACT_SUPPORT")))

    assert "repair nothing" in wrong.steps[0]
    assert "CONTACT_SUPPORT" not in str(wrong.steps)
    assert "cordons" not in str(wrong.steps)


@pytest.mark.parametrize(
    ("product", "severity", "step"),
    [
        ("NVIDIA-A100-80GB-PCIe", Severity.WARNING, "bridges connect the boards"),
        ("NVIDIA-A100-SXM4-80GB", Severity.CRITICAL, "Fabric Manager"),
    ],
)
def test_links_that_are_down_are_no_fault_of_boards_without_bridges(product: str, severity: Severity, step: str):
    said = "GPU 0's NvLink link 0 is currently down Recommended Action=RESTART_VM;"
    wrong = NodeConditions().evaluate(
        replace(WELL, conditions=(a_condition("GpuNvlinkWatch", message=said),), gpu_product=product)
    )

    assert (wrong.severity, "always on PCIe boards" in str(wrong.causes)) == (severity, True)
    assert step in str(wrong.steps)
    assert ("reboot" in str(wrong.steps)) is (severity is Severity.CRITICAL)


def test_the_line_that_tells_is_shown_of_a_long_message():
    said = (
        "NVRM: [83260.063553] NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "               NVRM: BAR1 is 0M @ 0x0 (PCI:0000:14:00.0)\n"
        "[83260.063557] nvidia: probe of 0000:14:00.0 failed with error -1"
    )
    wrong = evaluated(a_condition("KernelGpuError", reason="", message=said))

    assert "BAR1 is 0M @ 0x0" in wrong.summary
    assert "address range (BAR)" in str(wrong.causes)


def test_a_condition_that_recommends_no_action_is_a_note_with_its_message():
    wrong = evaluated(a_condition("GpuNvlinkWatch", reason="GpuNvlinkWatchIsNotHealthy", message=IMEX.format("NONE")))

    assert wrong.severity == Severity.NOTE
    assert "IMEX daemon status is -3 (not READY) Recommended Action=NONE" in told(wrong)
    assert causes(wrong).startswith("IMEX does not run while no ComputeDomain is active")
    assert wrong.steps == ("NVSentinel recommends NONE (do nothing).", "The hardware needs no action.")


def test_a_missing_device_of_subnet_managers_is_no_fault_of_the_network_card():
    """NVSentinel #1663, #1716."""
    said = "ErrorCode:issm NIC:mlx5_3 NICPort:1 Device mlx5_3 port 1: issm character device missing from "
    name = "InfiniBandCharDeviceCheck"
    message = f"{said}/sys/class/infiniband_mad (expected for an InfiniBand-mode port). Recommended Action=REPLACE_VM;"
    wrong = evaluated(a_condition(name, reason=f"{name}IsNotHealthy", message=message))

    assert wrong.severity == Severity.WARNING
    assert "RDMA works without it" in causes(wrong)


def test_an_imex_daemon_that_is_not_ready_is_not_critical_whatever_is_recommended():
    assert evaluated(a_condition("GpuNvlinkWatch", message=IMEX.format("CONTACT_SUPPORT"))).severity == Severity.WARNING


@pytest.mark.parametrize(
    ("condition", "severity", "says", "asks"),
    [
        (a_condition("GPUMissing", message="Expected to see 8 GPUs but found 7. FaultCode: NHC2009"),
         Severity.CRITICAL, "Reported by AKS: Expected to see 8", "kernel log"),
        (a_condition("XIDErrors", message="XID error-codes found: 48, 56. FaultCode: NHC2001"),
         Severity.CRITICAL, "codes found: 48, 56", "Reset the GPU, or reboot the node: ask for it in its case."),
        (a_condition("XIDErrors", message="XID error-codes found: 13, 31. FaultCode: NHC2001"),
         Severity.NOTE, "codes found: 13, 31", "The hardware needs no action"),
        (a_condition("AcceleratedHardwareReady", "False", "NvidiaXID48Error", "detected XID-48 on the instance"),
         Severity.CRITICAL, "AcceleratedHardwareReady=False: NvidiaXID48Error: detected XID-48", "EKS: it reboots or"),
        (a_condition("AcceleratedHardwareReady", "Unknown"), Severity.CRITICAL, "Ready=Unknown", "auto repair"),
        (a_condition("AcceleratedHardwareReady", "False", "NvidiaXID13Error", "detected XID-13"),
         Severity.NOTE, "NvidiaXID13Error", "The hardware needs no action"),
        (a_condition("NetworkingReady", "False", "IPAMDNotReady"), Severity.WARNING, "NetworkingReady=False", "EKS"),
        (a_condition("NebiusGPUError", reason="GPUHealthCheckFailedMK8S", message='{"errors":[{"x":"49, not 56"}]}'),
         Severity.CRITICAL, "Reported by Nebius: GPUHealthCheckFailedMK8S", "cordons, drains"),
        (a_condition("GcfsSnapshotterReady", "False"), Severity.WARNING, "Reported by unknown detector", "kernel log"),
        (a_condition("AMDGPUUnhealthy", reason="AMDGPUIsDown"), Severity.CRITICAL, "AMDGPUUnhealthy", "kernel log"),
        (a_condition("GcmXidErrorsProblem", message="Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus"),
         Severity.CRITICAL, "Reported by GCM: Xid (PCI", "Xid 79: Drain the node"),
        (a_condition("SysLogsXIDError", reason="SysLogsXIDErrorIsNotHealthy",
                     message="ErrorCode:13 PCI:0001:00:00 Recommended Action=RESTART_VM;"),
         Severity.NOTE, "ErrorCode:13", "RESTART_VM (restart the virtual machine)"),
        (a_condition("SysLogsXIDError", message="ErrorCode:31 PCI:1 Recommended Action=NONE;ErrorCode:79 PCI:2 "
                                                "Recommended Action=RESTART_BM;"),
         Severity.CRITICAL, "ErrorCode:79", "NONE (do nothing), RESTART_BM (reboot the node)"),
        (a_condition("GpuXidError", message="ErrorCode:79 gpu:0 XID error occured Recommended Action=NODE_REBOOT;"),
         Severity.CRITICAL, "ErrorCode:79", "NODE_REBOOT (reboot the node)"),
        (a_condition("SysLogsSXIDError", message="ErrorCode:28002 NVSwitch:3 Recommended Action=NONE;"),
         Severity.NOTE, "28002", "do nothing"),
        (a_condition("CperHardwareErrorFatal", message="{1}[Hardware Error]: event severity: fatal"),
         Severity.CRITICAL, "event severity: fatal", "hardware log"),
        (a_condition("KernelDeadlock", message="INFO: task containerd-shim:931150 blocked for more than 122 seconds."),
         Severity.WARNING, "containerd-shim", "reboot the node"),
        (a_condition("SysLogsXIDError", message="NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row"),
         Severity.WARNING, "Xid 63", "Reset the GPU once no pod uses it"),
        (a_condition("SysLogsXIDError", message="NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 "
                     "(None) to 0x4 (Drain and Reset)"),
         Severity.CRITICAL, "Xid 154", "Xid 154 (Drain and Reset): "),
        (a_condition("VMEventScheduled", message="Freeze scheduled"), Severity.NOTE, "Freeze scheduled", ""),
        (a_condition("FabricManagerDown", reason="FabricManagerNotActive"), Severity.WARNING, "FabricManagerNotActive",
         "systemctl status nvidia-fabricmanager"),
        (a_condition("UnhealthyNvidiaGridLicenseStatus"), Severity.WARNING, "Reported by AKS", "license server"),
        (a_condition("NvidiaPersistencedDown", reason="NvidiaPersistencedNotActive"), Severity.WARNING,
         "NvidiaPersistencedNotActive", "systemctl status nvidia-persistenced"),
        (a_condition("AcceleratedHardwareReady", "False", "DCGMHealthCode101", "error code 101"),
         Severity.CRITICAL, "DCGM's code 101 is DCGM_FR_XID_ERROR", "Find the Xid"),
        (a_condition("AcceleratedHardwareReady", "False", "DCGMHealthCode12", "error code 12"),
         Severity.WARNING, "DCGM's code 12 is", ""),
        (a_condition("AcceleratedHardwareReady", "False", "FabricManagerNotRunning", "Fabric Manager status: Failure"),
         Severity.CRITICAL, "FabricManagerNotRunning", "systemctl status nvidia-fabricmanager"),
    ],
)  # fmt: skip
def test_each_detectors_condition_is_judged_by_its_polarity_and_message(condition, severity, says, asks):
    wrong = evaluated(condition)

    assert wrong.severity == severity
    assert says in told(wrong) + causes(wrong)
    assert asks in steps(wrong)
    assert wrong.facts == {condition.type: condition.message}


def test_a_message_that_is_too_long_keeps_the_action_at_its_end():
    message = f"ErrorCode:79 {'kernel log ' * 90}Recommended Action=RESTART_BM;"

    wrong = evaluated(a_condition("SysLogsXIDError", message=message), a_condition("GpuMemWatch", message=message))

    assert wrong.summary.endswith("Xid 79 (GPU has fallen off the bus). Recommended action: RESTART_BM")
    assert wrong.facts["GpuMemWatch"] == message


def test_while_a_driver_is_replaced_gpus_are_missing_for_a_reason():
    """Z18, Z21."""
    lost = a_condition("AcceleratedHardwareReady", "False", "DCGMError", "connection to the host engine was lost")

    assert NodeConditions().evaluate(with_conditions("GPUMissing", is_changing=True)) is None
    assert NodeConditions().evaluate(replace(WELL, conditions=(lost,), is_changing=True)) is None
    assert NodeConditions().evaluate(replace(WELL, conditions=(lost,))) is not None


@pytest.mark.parametrize(
    ("types", "asked"),
    [
        (("GpuMemWatch",), ("NVSentinel",)),
        (("KernelDeadlock",), ("kernel log",)),
        (("GpuMemWatch", "KernelDeadlock"), ("NVSentinel", "kernel log")),
        (("DiskPressure",), ("what fills it",)),
        (("NetworkUnavailable",), ("network plugin",)),
        (("FrequentKubeletRestart",), ("both logs",)),
        (("FrequentKubeletRestart", "GpuMemWatch", "DiskPressure"), ("both logs", "NVSentinel", "what fills it")),
    ],
)
def test_each_of_several_conditions_says_what_helps_against_it(types, asked):
    asks = steps(NodeConditions().evaluate(with_conditions(*types)))

    every = ("both logs", "NVSentinel", "what fills it", "network plugin", "kernel log")
    assert tuple(word for word in every if word in asks) == asked


def test_a_network_that_is_away_is_nothing_that_a_machine_runs_out_of():
    assert causes(NodeConditions().evaluate(with_conditions("NetworkUnavailable"))) == ""


@pytest.mark.parametrize("reason", ["NoRouteCreated", "NodeInitialization: Waiting for cloud routes"])
def test_a_new_node_without_routes_is_waited_for(reason):
    """cloud-provider's route controller, and Azure/AgentBaker #8797."""
    wrong = evaluated(a_condition("NetworkUnavailable", message=reason))

    assert "new node" in causes(wrong)
    assert "route table" in steps(wrong)
    assert "network plugin" not in steps(wrong)
    assert causes(NodeConditions().evaluate(with_conditions("DiskPressure"))) == "A disk of the node is nearly full."


def test_a_condition_that_nvsentinel_does_not_clear_asks_for_no_repair():
    """NVSentinel #1438 and #1299."""
    stale = evaluated(a_condition("GpuMemWatch", "True", "GpuMemWatchIsNotHealthy", "No health failures;"))
    message = "ErrorCode:POD_STUCK_AFTER_DELETION v1/Pod:prod/61f345d0-134... Recommended Action=RESTART_VM"
    stuck = evaluated(a_condition("PodStuckAfterDeletion", "True", "PodStuckAfterDeletionIsNotHealthy", message))

    assert (stale.severity, stuck.severity) == (Severity.NOTE, Severity.WARNING)
    assert "another spelling" in causes(stale)
    assert "uncordon the node" in steps(stale)
    assert stuck.steps[0].startswith("Check whether the named pods still exist")
    assert "recommends" not in steps(stuck)


def test_a_condition_that_nvsentinel_does_not_clear_frees_no_broken_node():
    stale = a_condition("GpuMemWatch", "True", "GpuMemWatchIsNotHealthy", "No health failures;")
    broken = a_condition(
        "GpuInforomWatch", "True", "GpuInforomWatchIsNotHealthy",
        "ErrorCode:DCGM_FR_CORRUPT_INFOROM GPU:0 Recommended Action=COMPONENT_RESET;",
    )  # fmt: skip

    assert "uncordon" not in steps(evaluated(stale, broken))


def test_faults_of_one_program_on_several_gpus_may_need_a_reset():
    """flashinfer #3869."""
    line = "NVRM: Xid (PCI:0000:{}:00): 31, pid=477445, name=python3, MMU Fault"
    several, one = (
        evaluated(a_condition("XIDErrors", "True", "XIDErrors", "\n".join(map(line.format, buses))))
        for buses in (("1a", "9a"), ("1a", "1a"))
    )

    assert "reset its GPUs" in steps(several)
    assert "reset its GPUs" not in steps(one)


def test_while_a_driver_is_replaced_dcgm_is_away():
    """Z18, Z21."""
    assert NodeConditions().evaluate(with_conditions("GpuDcgmConnectivityFailure", is_changing=True)) is None
    assert NodeConditions().evaluate(with_conditions("GpuMemWatch", is_changing=True)) is not None


def test_the_race_after_a_boot_is_told_as_one():
    wrong = NodeConditions().evaluate(with_conditions("FrequentKubeletRestart", "FrequentContainerdRestart"))

    assert "may race" in causes(wrong)
    assert wrong.title == "FrequentKubeletRestart and 1 more on gpu-001"
    assert wrong.summary == "Reported by node-problem-detector: It is so."


def test_operands_that_stay_paused_are_found_when_nothing_is_changing():
    assert PausedOperands().evaluate(replace(WELL, is_paused=True)) is not None
    assert PausedOperands().evaluate(replace(WELL, is_paused=True, is_changing=True)) is None


def test_silence_of_a_node_is_told_apart_from_never_having_spoken():
    silent = ExporterSilent().evaluate(replace(WELL, is_reporting=False))
    never = ExporterSilent().evaluate(replace(WELL, is_reporting=False, ever_reported=False))

    assert silent.title == "GPU telemetry of gpu-001 stopped"
    assert never.title == "No GPU telemetry from gpu-001 yet"
    assert never.summary.startswith("Other nodes have telemetry now.")


@pytest.mark.parametrize("vendor", ["", "amd", "habana"])
def test_where_no_node_has_telemetry_none_is_held_against_others(vendor):
    """All series may be left out: no node's name is on them, or each is of a node that the cluster does not have."""
    never = ExporterSilent().evaluate(
        replace(WELL, is_reporting=False, ever_reported=False, are_others_reporting=False, vendor=vendor)
    )

    assert never.summary.startswith("No other node has telemetry now.")
    assert never.steps[0] == "Check which nodes the telemetry source of the cluster leaves out."


@pytest.mark.parametrize("given", [{"is_changing": True}, {"capacity": {}}])
def test_silence_is_expected_during_an_upgrade_and_where_there_is_nothing_to_hear(given):
    """Z21."""
    assert ExporterSilent().evaluate(replace(WELL, is_reporting=False, **given)) is None


def test_a_failed_upgrade_says_why_where_the_stack_knows():
    wrong = UpgradeFailed().evaluate(
        replace(
            WELL,
            upgrade_state="upgrade-failed",
            upgrade_blocker=Blocker(("The image is not there.",), ("Look at the tag.",)),
        )
    )

    assert wrong.causes == ("The image is not there.",)
    assert wrong.steps[0] == "Look at the tag."
    assert wrong.steps[1].endswith("nvidia.com/gpu-driver-upgrade-state=upgrade-required --overwrite")
    assert wrong.facts["blocker"] == {"causes": ("The image is not there.",), "steps": ("Look at the tag.",)}


@pytest.mark.parametrize("state", ["drain-required", "pod-restart-required"])
def test_an_upgrade_that_goes_on_is_stuck(state):
    assert UpgradeStuck().evaluate(replace(WELL, upgrade_state=state)) is not None


def test_what_is_said_of_an_upgrade_is_so_from_its_first_second():
    """A finding is on the pages while it is being confirmed, with how long by its side."""
    stuck = UpgradeStuck().evaluate(replace(WELL, upgrade_state="drain-required"))
    still = UpgradeQueueStill().evaluate(ClusterFacts("eu-1", upgrades_queued=2, upgrades_are_still=True))

    assert (stuck.title, stuck.summary) == (
        "Driver upgrade of gpu-001 is stuck", "Its upgrade state is drain-required.",
    )  # fmt: skip
    assert still.title == "Driver upgrades do not progress in eu-1"
    assert "Queued at the start: 2 nodes" in told(still)


def test_whoever_waits_in_the_queue_is_not_stuck():
    """With one slot most nodes of a large fleet wait for hours, and nothing is wrong with any of them."""
    assert UpgradeStuck().evaluate(replace(WELL, upgrade_state="upgrade-required")) is None
    assert UpgradeStuck().evaluate(replace(WELL, upgrade_state="upgrade-done")) is None


@pytest.mark.parametrize(("queued", "are_still", "said"), [(0, True, False), (30, False, False), (1, True, True)])
def test_a_queue_of_upgrades_is_told_of_once_nothing_moves(queued, are_still, said):
    wrong = UpgradeQueueStill().evaluate(ClusterFacts("eu-1", upgrades_queued=queued, upgrades_are_still=are_still))

    assert bool(wrong) is said


def test_a_queue_that_is_still_names_who_keeps_it():
    facts = ClusterFacts(
        "eu-1",
        upgrades_queued=1,
        upgrades_are_still=True,
        upgrades_blocker=Blocker(("gpu-1 is cordoned.",), ("Bring it back.",)),
    )

    wrong = UpgradeQueueStill().evaluate(facts)
    assert (wrong.causes, wrong.steps) == (("gpu-1 is cordoned.",), ("Bring it back.",))


def test_a_source_that_is_silent_is_no_nodes_fault():
    """Z20."""
    wrong = TelemetrySilent().evaluate(ClusterFacts("eu-1", telemetry_silent_reason="The server cannot be reached"))

    assert wrong.severity == Severity.WARNING
    assert TelemetrySilent().evaluate(ClusterFacts("eu-1")) is None


def test_operands_that_are_paused_and_take_all_gpus_with_them_are_critical():
    gone = replace(WELL, is_paused=True, allocatable={"nvidia.com/gpu": 0}, expected={"nvidia.com/gpu": 8})

    assert PausedOperands().evaluate(gone).severity == "critical"
    assert PausedOperands().evaluate(replace(WELL, is_paused=True)).severity == "warning"


def test_an_operand_that_is_down_says_what_comes_of_it():
    one = OperandDown().evaluate(replace(WELL, operands_away=("device-plugin",)))
    both = OperandDown().evaluate(replace(WELL, operands_away=("device-plugin", "dcgm-exporter")))

    assert (one.title, one.summary) == ("Device plugin not running on gpu-001", "Its GPUs are not allocatable.")
    assert both.title == "Device plugin, DCGM exporter not running on gpu-001"
    assert both.summary == "Its GPUs are not allocatable. Its GPUs have no telemetry."
    assert OperandDown().evaluate(replace(WELL, operands_away=("device-plugin",), is_changing=True)) is None


def test_a_node_that_comes_and_goes_is_told_from_the_third_time_on():
    assert NodeFlapping().evaluate(replace(WELL, falls=2)) is None
    assert (
        NodeFlapping().evaluate(replace(WELL, falls=3)).fingerprint
        == NodeFlapping().evaluate(replace(WELL, falls=9)).fingerprint
    )


@pytest.mark.parametrize(
    ("vendor", "port", "has_engine"), [("", 9400, True), ("amd", 5000, False), ("habana", 41611, False)]
)
def test_a_silent_exporter_is_looked_for_as_its_vendors(vendor, port, has_engine):
    asks = steps(ExporterSilent().evaluate(replace(WELL, is_reporting=False, vendor=vendor)))

    assert f"localhost:{port}/metrics" in asks
    assert ("DCGM" in asks) == has_engine


def test_a_gpu_that_is_called_unhealthy_is_found_where_nothing_is_missing():
    """Where GPUs are missing for it, that finding names it."""
    sick = replace(WELL, unhealthy=("GPU 5: its DRA driver reports it as unhealthy (healthy=false).",))

    assert "GPU 5: its DRA driver reports it as unhealthy (healthy=false)" in told(DeviceUnhealthy().evaluate(sick))
    assert DeviceUnhealthy().evaluate(replace(sick, allocatable={GPU: 7})) is None
    assert DeviceUnhealthy().evaluate(replace(sick, is_changing=True)) is None
    assert DeviceUnhealthy().evaluate(WELL) is None


@pytest.mark.parametrize(
    ("name", "message", "severity", "step"),
    [
        ("PcieHealthProblem", "pcieport 0000:80:01.1: AER: Uncorrected (Fatal) error message", "critical", "Drain"),
        ("PcieHealthProblem", "pcieport 0000:80:01.1: AER: Multiple Corrected error message", "warning", "Watch"),
        (
            "SysLogsSXIDError",
            "nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 11012, Non-fatal, Link 12",
            "warning",
            "often",
        ),
        ("SysLogsSXIDError", "nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 22013, Fatal, Link 12", "critical", "Reset"),
        ("XidHardwareErrors", "Xid 79 detected", "critical", "Reboot"),
        ("XidHardwareErrors", "Xid 999 detected", "critical", "catalog"),
    ],
)
def test_a_line_of_the_kernel_has_a_severity_and_a_step_of_its_own(name, message, severity, step):
    found = NodeConditions().evaluate(replace(WELL, conditions=(a_condition(name, message=message),)))

    assert found.severity == severity
    assert step in steps(found)
