"""The validator's steps, as their logs tell them."""

import pytest

from health.stack.causes import Weight, cause_of
from tests.health.logs import logged
from tests.health.stack.signs import a_pod, crashing, signs

STEP = "driver-validation"
NOT_SHARED = (
    'failed to generate container "4a1e9" spec: failed to generate spec: path "/run/nvidia/validations" is mounted on '
    '"/run" but it is not a shared mount'
)  # gpu-operator #315


@pytest.mark.parametrize(
    ("log", "key", "named"),
    [
        ("validator-modeset", "dev_char_module", "the module nvidia-modeset does not load"),
        ("validator-uvm", "dev_char_uvm", "is no guest driver"),
        ("validator-major", "dev_char_major", "not found in /proc/devices"),
        ("validator-no-devices", "dev_char", "making links under /dev/char"),
    ],
)
@pytest.mark.parametrize("operand", ["operator-validator", "container-toolkit"])
def test_the_step_that_failed_is_named_and_not_nvidia_smi(log, key, named, operand):
    cause = cause_of(signs(operand, crashing(*logged(log), container=STEP, phase="Pending")))

    assert (cause.key, cause.weight) == (key, Weight.WRONG)
    assert named in cause.sentence
    assert "does not run" not in cause.sentence
    assert "driver pod" not in cause.action  # it may be the host's


@pytest.mark.parametrize("log", ["validator-modeset", "validator-major"])
def test_what_switches_the_links_off_is_an_action_and_never_the_reason(log):
    cause = cause_of(signs("operator-validator", crashing(*logged(log), container=STEP, phase="Pending")))

    assert "DISABLE_DEV_CHAR_SYMLINK_CREATION=true" in cause.action
    assert cause.quote.lstrip().startswith(("Error: ", "time="))
    assert cause.quote != 'value: "true"'


def test_the_same_words_in_the_message_of_a_container_that_ended_are_read():
    said = logged("validator-modeset")[0]
    cause = cause_of(signs("operator-validator", crashing(container=STEP, phase="Pending", last_words=said)))

    assert cause.key == "dev_char_module"


@pytest.mark.parametrize("not_ready", [[], ["Driver", "Container toolkit"]])
@pytest.mark.parametrize("operand", ["operator-validator", "container-toolkit"])
def test_a_mount_that_is_not_shared_comes_before_the_steps_and_what_is_waited_for(operand, not_ready):
    pod = a_pod(reason="CreateContainerError", message=NOT_SHARED, container=STEP, phase="Pending")
    cause = cause_of(signs(operand, pod, not_ready=not_ready))

    assert (cause.key, cause.weight, cause.quote) == ("mount_not_shared", Weight.WRONG, NOT_SHARED)
    assert "mount --make-rshared /run." in cause.action


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("lstat /run/nvidia/driver/dev/nvidiactl: no such file or directory", "device_node_missing"),  # #425
        ("CDI device injection failed: unresolvable CDI devices management.nvidia.com/gpu=all", "cdi_unresolvable"),
        ("context deadline exceeded", "runtime_slow"),
    ],
)
def test_a_container_that_cannot_be_made_quotes_the_kubelet(message, key):
    pod = a_pod(reason="CreateContainerError", message=message, container="toolkit-validation", phase="Pending")
    cause = cause_of(signs("operator-validator", pod, not_ready=["Container toolkit"]))

    assert (cause.key, cause.quote) == (key, message)


def test_a_key_that_is_missing_is_said_by_the_kubelet():
    pod = a_pod(reason="CreateContainerConfigError", message='configmap "plugin-config" not found', phase="Pending")

    assert cause_of(signs("operator-validator", pod)).quote == 'configmap "plugin-config" not found'


def test_a_step_that_waits_for_the_drivers_container_says_so():
    line = "stat: cannot statx '/run/nvidia/validations/.driver-ctr-ready': No such file or directory"
    pod = a_pod(phase="Pending", container=STEP, log=[line, "command failed, retrying after 5 seconds"])

    assert cause_of(signs("operator-validator", pod)).weight is Weight.WAITING
    late = a_pod(phase="Pending", container=STEP, log=[line], is_overdue=True)
    assert cause_of(signs("operator-validator", late)).key == "driver_ctr_not_ready"
