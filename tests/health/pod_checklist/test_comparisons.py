"""The parts of the checklist that compare texts: CUDA errors, device lists, and who held the memory."""

import pytest

from health.pod_checklist.cuda_errors import CUDA_ERRORS, cuda_error_in
from health.pod_checklist.device_lists import NO_LIST, DeviceList, GotGpus, difference
from health.pod_checklist.out_of_memory import MemoryHolder, shortage_of
from health.stack.causes.entries import entry

TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} MiB. GPU 0 has a total capacity of "
    "79.10 GiB of which {free} GiB is free. {others}Including non-PyTorch memory, this process has {own} GiB memory "
    "in use. Of the allocated memory {allocated} GiB is allocated by PyTorch, and {reserved} GiB is reserved by "
    "PyTorch but unallocated."
)
COUNTED = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() "
    "that might have already set an error? Error 802: system not yet initialized"
)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("RuntimeError: CUDA error: out of memory", 2),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB", 2),
        ("CUDA driver version is insufficient for CUDA runtime version", 35),
        ("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", 46),
        ("RuntimeError: No CUDA-capable device is detected", 100),
        ("RuntimeError: CUDA error: invalid device ordinal", 101),
        ("CUDA error: no kernel image is available for execution on the device", 209),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", 214),
        ("CUDA_ERROR_CONTAINED", 226),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", 700),
        ("cudaErrorLaunchFailure: something", 719),
        (COUNTED, 802),
        ("Error 803: system has unsupported display driver / cuda driver combination", 803),
        ("CUDA failure 999", 999),
        ("Cuda failure: error code: 46", 46),
    ],
)  # fmt: skip
def test_the_error_is_read_from_its_name_text_or_number(line, number):
    assert getattr(cuda_error_in(line), "number", None) == number


@pytest.mark.parametrize(
    "line",
    ["", "KeyError: 'model'", "HTTP error 802", "CUDA 12.8 was found", "CUDA error 123456", "error 2 in cudaless"],
)
def test_other_lines_name_no_error(line):
    assert cuda_error_in(line) is None


def test_every_error_has_a_number_of_its_own_and_an_explanation():
    assert len({each.number for each in CUDA_ERRORS}) == len(CUDA_ERRORS)
    assert all(entry(each.cause).entry.steps for each in CUDA_ERRORS)
    assert all("{" not in entry(each.cause).entry.title for each in CUDA_ERRORS)


@pytest.mark.parametrize(
    ("amounts", "holder", "held"),
    [
        ({"own": 39.0, "free": 0.1, "allocated": 38.0, "reserved": 0.5}, MemoryHolder.OTHERS, 40.0),
        ({"own": 78.9, "free": 0.2, "allocated": 60.0, "reserved": 15.0}, MemoryHolder.FRAGMENTS, 15.0),
        ({"own": 78.9, "free": 0.2, "allocated": 60.0, "reserved": 1.0}, MemoryHolder.OVERHEAD, 17.9),
        ({"own": 78.9, "free": 0.2, "allocated": 76.0, "reserved": 1.0}, MemoryHolder.PROGRAM, 78.9),
    ],
)
def test_the_holder_of_the_memory_is_read_from_the_amounts(amounts, holder, held):
    found = shortage_of(TORCH.format(tried="20.00", others="", **amounts))

    assert (found.holder, round(found.held_mib / 1024, 1)) == (holder, held)


def test_a_process_that_is_named_counts():
    words = TORCH.format(tried="20.00", others="Process 71 has 30.00 GiB memory in use. ", own=48, free=1, allocated=45,
                         reserved=0.1)  # fmt: skip

    assert shortage_of(words).holder is MemoryHolder.OTHERS


def test_a_message_without_amounts_names_no_holder():
    assert shortage_of("RuntimeError: CUDA error: out of memory").holder is MemoryHolder.UNKNOWN


CUDA, NVIDIA = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"
TWO = GotGpus(2, ("GPU-aa1", "GPU-bb2"))


@pytest.mark.parametrize(
    ("variable", "devices", "got", "words"),
    [
        (CUDA, "0,1", TWO, ""),
        (CUDA, "GPU-aa,GPU-bb2", TWO, ""),
        (CUDA, "0", TWO, "CUDA sees only 1 of its 2 GPUs"),
        (CUDA, "0,4", TWO, "4 is not a GPU of the pod"),
        (CUDA, "GPU-cc", TWO, "GPU-cc is not a GPU of the pod"),
        (CUDA, "", TWO, "hides every GPU"),
        (CUDA, "-1", TWO, "hides every GPU"),
        (CUDA, "0", GotGpus(None), None),
        (CUDA, "GPU-aa", GotGpus(2), None),
        (CUDA, None, TWO, None),
        (CUDA, NO_LIST, TWO, "its value is not a list of devices"),
        (NVIDIA, "GPU-bb2,GPU-aa1", TWO, ""),
        (NVIDIA, "all", TWO, "allocated other GPUs"),
        (NVIDIA, "all", GotGpus(2), None),
        (NVIDIA, "void", TWO, "hides every GPU"),
        (NVIDIA, "all", GotGpus(0), "requests no GPU"),
        (NVIDIA, "void", GotGpus(0), ""),
    ],
)
def test_a_list_is_compared_with_the_allocation(variable, devices, got, words):
    found = difference(DeviceList("main", variable, devices), got)

    assert found == words if not words else words in found
