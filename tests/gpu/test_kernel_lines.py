"""The lines of the kernel that conditions quote."""

import pytest

from gpu.kernel_lines import LINES, LONGEST, kernel_line_in
from tests.search_steps import steps_of_search


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.key)
def test_a_family_knows_its_own_example_and_no_earlier_one_takes_it(line):
    assert kernel_line_in(line.example).key == line.key


@pytest.mark.parametrize(
    "text",
    [
        "kubelet has sufficient memory available",
        "nvidia 0000:3b:00.0: enabling device (0000 -> 0002)",
        "mlx5_core 0000:d2:00.0 eth2: Link up",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode",
        "cri:containerd on the node is functioning properly",
    ],
)
def test_what_a_healthy_node_says_is_of_no_family(text):
    assert kernel_line_in(text) is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("An uncorrectable error occurred on GPU 0", None),
        ("bus error: non-correctable error", None),
        ("an un-correctable error", None),
        ("SBE: correctable ecc errors", "corrected"),
        ("NeuronHBMUncorrectableError: Discovered HBM Uncorrectable Error", "neuron"),
        ("Uncorrectable ECC error on DIMM A1", "memory_uncorrected"),
        ("Uncorrectable ECC in GPU memory", "gpu_memory"),
        ("GPU 0000:3b:00.0: 0 uncorrectable ECC errors", None),
        ("GPU 0000:3b:00.0: 10 uncorrectable ECC errors", "gpu_memory"),
        ("traps: python3[12] general protection fault ip:7f0 sp:7f error:0 in libc.so.6", None),
        ("general protection fault, probably for non-canonical address 0xdead: 0000 [#1] PREEMPT SMP", "kernel_crash"),
        ("traps: a.out[12] trap invalid opcode ip:55 sp:7f error:0 in a.out", None),
        ("WARNING: CPU: 3 PID: 12 RIP: 0010:__alloc_pages+0x2f/0x3a0", None),
        ("SXid (PCI:0000:05:00.0): 22013, Non-fatal, fatal Link", "switch_error"),
        ("row remap failure detected on GPU 0, the GPU needs replacement", "gpu_rows_used_up"),
        ("GPU 0: row remapping pending", "gpu_memory"),
        ("row remap failures: 0", None),
        ("row remap failure: 0", None),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE: 0", None),
        ("no row remap failure on any GPU", None),
        ("Check row_remap_failure passed", None),
        ("8 of 8 GPUs found", None),
        ("7 of 8 GPUs found", "gpu_count"),
        ("stop using the expected 8 gpus", None),
        ("node is not up to date", None),
        ("interface eth2 is not up", "link_down"),
        ("a zombie of old settings", None),
        ("ExcessiveZombies: 120 zombie processes", "processes"),
        ("maintenance of the power supply is planned", None),
        ("PowerSupplyFailure", "power"),
        ("EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro", None),
        ("rdma: added device mlx5_0, fatal=0", None),
        ("no reset required", None),
        ("Reset required: no", None),
        ("degraded_bw=0", None),
        ("GPU fabric health mask 0x0", None),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06", None),
        ("amdgpu 0000:29:00.0: amdgpu: Fault handling enabled", None),
        ("ccp 0000:22:00.1: psp initialization failed", None),
        ("amdgpu 0000:0d:00.0: amdgpu: PSP load tmr failed!", "amd_firmware_hangs"),
        ("amdgpu 0000:0d:00.0: amdgpu: XGMI: download of the topology is done", None),
        ("amdgpu 0000:0d:00.0: amdgpu: XGMI link 3 is down", "amd_links"),
        ("load nvidia failed: key was rejected by service", "module_rejected"),
        ("nvidia: module verification failed: signature and/or required key missing - tainting kernel", None),
        (
            "NVRM: API mismatch: the client has the version 535.54.03, but#012NVRM: this kernel module",
            "driver_mismatch",
        ),
        ("NVRM: API mismatch: the client 'python3' (pid 12)", "driver_mismatch"),
        ("nvidia: Unknown symbol sme_me_mask (err -22)", "module_of_another_kernel"),
        ("nvidia: version magic '5.15.0-91-generic SMP' should be '5.15.0-92-generic SMP'", "module_of_another_kernel"),
        ("nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client", "peermem_symbols"),
        ("pci 0000:00:1c.0: BAR 13: no space for [io  size 0x1000]", None),
        ("pci 0000:00:1c.0: BAR 14: failed to assign [mem size 0x00200000]", None),
        ("pci 0000:01:00.0: BAR 0: no space for [mem size 0x200000000 64bit pref]", "gpu_no_address"),
        ("pci 0000:01:00.0: BAR 1 [mem size 0x2000000000 64bit pref]: can't assign; no space", "gpu_no_address"),
        ("amdgpu: Direct firmware load for amdgpu/isp_4_1_0.bin failed with error -2", "of_amd"),
        ("[drm] Not enough PCI address space for a large BAR.", None),
        ("mlx5_core 0000:17:00.0: Failed to enable MSI-X", "of_network"),
        ("megaraid_sas 0000:3b:00.0: Failed to enable MSI-X, falling back to MSI", None),
        ("pci 0000:05:00.0: can't change power state from D3cold to D0 (config space inaccessible)", None),
        ("amdgpu 0000:03:00.0: can't change power state from D3cold to D0", "gpu_power_state"),
        ("ahci 0000:02:00.1: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040]", None),
        ("xhci_hcd 0000:02:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040]", None),
        ("DMAR: [DMA Read] Request device [02:00.0] PASID ffffffff fault addr 79d3b000", None),
        ("mlx5_core 0000:17:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80]", "iommu_fault"),
        ("python3[99]: segfault at 8 ip 00007f94 sp 00007ffd error 4 in librocprofiler-sdk.so.1.0.0", None),
    ],
)
def test_a_line_that_resembles_a_family(text, key):
    line = kernel_line_in(text)

    assert (line and line.key) == key


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.key)
def test_no_message_of_a_condition_holds_a_worker(line):
    for pattern in line.patterns:
        assert steps_of_search(pattern, LONGEST) < 1_000_000, pattern
