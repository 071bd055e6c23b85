import pytest

from gpu.conditions import ConditionSeverity, ConditionVerdict, is_a_fault_report, is_of_a_gpu, read_condition, xids_in

W, F, U = ConditionVerdict.WRONG, ConditionVerdict.FINE, ConditionVerdict.UNKNOWN


@pytest.mark.parametrize(
    ("name", "when_true", "when_false", "when_unknown"),
    [
        *((name, F, W, W) for name in (
            "AcceleratedHardwareReady", "ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady",
            "GcfsSnapshotterReady", "GpuHealthy", "GpuDriverAvailable", "GpuHealthCheckSucceeded", "EtcdIsVoter",
            "example.com/IBHealthy",
        )),
        *((name, W, F, U) for name in (
            "GPUMissing", "NVLinkStatusInactive", "XIDErrors", "IBLinkFlapping", "UnhealthyNvidiaDevicePlugin",
            "FilesystemCorruptionProblem", "KernelDeadlock", "ReadonlyFilesystem", "GpuMemWatch",
            "GpuNvswitchFatalWatch", "SysLogsGPUFallenOff", "NebiusGPUError", "NebiusBootDiskIOError",
            "HardwareIssuesSuspected", "AMDGPUUnhealthy", "GcmSmiEccProblem", "NvidiaXidError", "NvidiaDeviceLost",
            "NvidiaTemperatureHigh", "GpuUnavailable", "KubeletUnhealthy", "GpuNotReady", "ReadOnlyRootFileSystem",
            "RebootRequired", "DeprecatedAuthsFieldInContainerdConfiguration", "MemoryPressure", "GpuCount", "RdmaLink",
        )),
        *((name, U, U, U) for name in ("CWActive", "Swap", "NodeHasGPU", "", "x" * 300)),
    ],
)  # fmt: skip
def test_the_polarity_of_a_condition_goes_by_its_detector_or_its_name(name, when_true, when_false, when_unknown):
    told = [read_condition(name, status).verdict for status in ("True", "False", "Unknown")]

    assert told == [when_true, when_false, when_unknown]


@pytest.mark.parametrize(
    ("name", "status", "reason", "verdict"),
    [
        ("NodeChecks", "True", "ChecksHasIssues", W), ("NodeChecks", "False", "ChecksHasNoIssues", F),
        ("NodeChecks", "True", "ChecksPassed", F), ("NodeChecks", "False", "ChecksNotPassed", W),
        ("NodeChecks", "True", "UpdateScheduled", U), ("NodeChecks", "True", "", U),
        ("NodeChecks", "Unknown", "ChecksHasIssues", U), ("GpuReady", "True", "ProbeFailed", F),
    ],
)  # fmt: skip
def test_where_the_name_does_not_tell_the_reason_does(name, status, reason, verdict):
    assert read_condition(name, status, reason).verdict == verdict


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("GPU 3 has an uncorrectable error", W), ("all eight GPUs are healthy", F), ("no GPU has an error", U),
        ("0 errors on 8 GPUs", U), ("checked at 12:00", U), ("node is ready for external remediation", U),
    ],
)  # fmt: skip
def test_where_the_reason_does_not_tell_either_the_message_does(message, verdict):
    assert read_condition("NodeChecks", "True", "ChecksDone", message).verdict == verdict


def test_a_fault_that_hinders_no_work_is_not_critical():
    """NVSentinel #465."""
    said = "Detected clocks event due to power violation in GPU 0. This GPU can still perform workload."

    assert read_condition("GpuPowerWatch", "True", "GpuPowerWatchIsNotHealthy", said).severity == "warning"


@pytest.mark.parametrize(
    ("name", "reason", "said"),
    [
        # leptonai/gpud #1174: only "Fatal" ends a link.
        ("SysLogsXIDError", "SysLogsXIDErrorIsNotHealthy",
         "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)"),
        # NVSentinel's own test: an application's Xid, and its reporter asks for more.
        ("GpuXidError", "GpuXidErrorIsNotHealthy", "ErrorCode:44 GPU:0 Recommended Action=CONTACT_SUPPORT;"),
        ("SysLogsXIDError", "SysLogsXIDErrorIsNotHealthy", "NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper"),
    ],
)  # fmt: skip
def test_an_xid_that_ends_no_work_is_a_warning(name, reason, said):
    assert read_condition(name, "True", reason, said).severity == "warning"


def test_a_fatal_error_of_a_link_stays_critical():
    said = "NVRM: Xid (PCI:0000:00:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6)"

    assert read_condition("SysLogsXIDError", "True", "SysLogsXIDErrorIsNotHealthy", said).severity == "critical"


def test_a_type_of_the_past_tense_names_a_fault():
    assert read_condition("GPUFellOffBus", "True").severity == ConditionSeverity.CRITICAL


def test_a_check_that_recovered_and_stays_true_is_a_note():
    told = read_condition("GpuMemWatch", "True", "GpuMemWatchIsNotHealthy", "No Health Failures;")

    assert told.verdict == W
    assert told.severity == "note"


@pytest.mark.parametrize("name", ["Ready", "Drained", "MaintenancePlanned", "GracefulNodeShutdownInProgress"])
def test_what_kubernetes_says_of_a_nodes_life_is_no_fault(name):
    assert not is_a_fault_report(name)


@pytest.mark.parametrize(
    ("name", "reason", "reporter"),
    [
        ("GpuMemWatch", "", "NVSentinel"), ("GpuNewCheck", "GpuNewCheckIsNotHealthy", "NVSentinel"),
        ("GPUMissing", "", "AKS"), ("KernelReady", "", "EKS node monitoring agent"), ("NebiusNewError", "", "Nebius"),
        ("KernelDeadlock", "", "node-problem-detector"), ("DiskPressure", "", "kubelet"),
        ("GcmXidErrorsProblem", "", "GCM"), ("SomethingBroken", "", "unknown detector"),
    ],
)  # fmt: skip
def test_who_reports_a_condition_goes_by_its_type_and_reason(name, reason, reporter):
    assert read_condition(name, "True", reason).reporter == reporter
    assert read_condition(name, "True", reason).verdict == (F if name == "KernelReady" else W)


@pytest.mark.parametrize(
    ("name", "text", "xids"),
    [
        ("SysLogsXIDError", "ErrorCode:79 PCI:1 NVRM: Xid (PCI:0000:ef:00): 79, pid=0, GPU has fallen", [79, 79]),
        ("AcceleratedHardwareReady", "NvidiaXID48Error: detected XID-48 on the instance", [48, 48]),
        ("XIDErrors", "XID error-codes found: 48, 56. FaultCode: NHC2001", [48, 56]),
        ("GpuXidError", "ErrorCode:XID_79 GPU has fallen off the bus", [79, 79]),
        ("SysLogsSXIDError", "ErrorCode:28002 SXid (PCI:0000:ca:00.0): 30005, Non-fatal", []),
        ("SysLogsSXIDError", "ErrorCode:123 of a switch", []),
        ("GpuMemWatch", "ErrorCode:DCGM_FR_X GPU:0", []),
        ("GPUMissing", "Expected to see 8 GPUs but found 7", []),
        ("NvidiaXidError", "Xid 1234 is none", []),
        ("XIDErrors", "XIDErrors: 19:14:43 NVRM: Xid (PCI:0000:1a:00): 13, Graphics Exception", [13]),
    ],
)
def test_the_xids_that_a_condition_names_are_read(name, text, xids):
    assert sorted(xids_in(name, text)) == sorted(xids)


def test_only_what_is_about_gpus_is_explained_by_a_gpu():
    of_gpus = ("GpuMemWatch", "GPUMissing", "XIDErrors", "AcceleratedHardwareReady", "NVLinkStatusInactive")
    others = ("KernelReady", "IBLinkFlapping", "GpuDcgmConnectivityFailure", "SysLogsSXIDError", "DiskPressure")

    assert [name for name in (*of_gpus, *others) if is_of_a_gpu(name)] == list(of_gpus)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("GpuMemWatch", "An uncorrectable error occurred on GPU 0 Recommended Action=COMPONENT_RESET;"),
        ("GpuMemWatch", "A correctable error occurred on GPU 0 Recommended Action=COMPONENT_RESET;"),
        ("SysLogsXIDError", "ErrorCode:95 GPU:0 uncorrectable error Recommended Action=COMPONENT_RESET;"),
        ("XidHardwareErrors", "NVRM: Xid (PCI:0000:3b:00): 95, pid=1, Uncontained: uncorrectable error"),
        ("XidHardwareErrors", "NVRM: Xid (PCI:0000:3b:00): 79, severity=corrected"),
        ("GpuProblem", "AER: Corrected error. Suggested action: REPLACE_VM"),
    ],
)
def test_a_mild_line_of_the_kernel_lowers_no_xid_and_no_recommended_action(name, message):
    assert read_condition(name, "True", f"{name}IsNotHealthy", message).severity == "critical"
