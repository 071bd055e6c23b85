from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.stack.causes import Weight, cause_of, why_waits
from tests.health.stack.signs import a_pod, crashing, signs


def test_nothing_is_said_of_what_is_ready():
    assert cause_of(signs(pod=a_pod(is_ready=True))) is None


def test_a_pod_that_is_to_go_is_not_ready_whatever_it_says():
    assert cause_of(signs(pod=a_pod(is_ready=True, is_leaving=True))).key == "leaving"


def test_a_crash_is_told_with_its_last_line():
    cause = cause_of(signs("dcgm", crashing("one", "panic: the last", container="nvidia-dcgm-ctr", restarts=4)))

    assert cause.quote == "panic: the last"
    assert "nvidia-dcgm-ctr keeps crashing (CrashLoopBackOff, 4 restarts so far)" in cause.sentence


def test_a_crash_without_a_line_says_how_to_get_one():
    cause = cause_of(signs("dcgm", crashing(container="nvidia-dcgm-ctr")))

    assert cause.action == "kubectl -n gpu-operator logs p -c nvidia-dcgm-ctr --previous"


def test_what_waits_for_another_operand_names_it_and_not_its_own_consequence():
    pod = a_pod(phase="Pending", container="toolkit-validation", log=["Failed to initialize NVML"])
    cause = cause_of(signs(pod=pod, not_ready=["Driver", "Container toolkit"]))

    assert (cause.key, cause.weight) == ("waits", Weight.WAITING)
    assert cause.sentence == (
        "Waits for the driver, which is not ready on this node. Then it waits for the container toolkit."
    )


def test_an_image_that_cannot_be_pulled_does_not_wait_for_another_operand():
    pod = a_pod(phase="Pending", reason="ImagePullBackOff", message="401 Unauthorized")

    assert cause_of(signs(pod=pod, not_ready=["Driver"])).key == "image_not_allowed"


def test_what_crashes_by_itself_does_not_wait():
    cause = cause_of(signs(pod=crashing("panic", container="nvidia-device-plugin"), not_ready=["Driver"]))

    assert cause.key == "crashed"


@pytest.mark.parametrize(
    "container", ["driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"]
)
def test_a_validation_that_does_not_end_is_named_with_what_it_means(container):
    cause = cause_of(signs("operator-validator", a_pod(phase="Pending", container=container, is_overdue=True)))

    assert cause.key == container.replace("-", "_")
    assert f"Init container {container} does not end. " in cause.sentence


@pytest.mark.parametrize("container", ["cuda-validation", "k8s-driver-manager", "something-new"])
def test_an_init_container_may_take_its_time(container):
    cause = cause_of(signs("driver", a_pod(phase="Pending", container=container)))

    assert (cause.weight, "at work" in cause.sentence) == (Weight.WAITING, True)


@pytest.mark.parametrize(("state", "key"), [("failed", "mig_failed"), ("rebooting", "mig_changing"), ("success", None)])
def test_a_mig_manager_that_runs_may_have_failed(state, key):
    cause = cause_of(signs("mig-manager", a_pod(is_ready=True), mig_state=state, mig_config="all-1g.10gb"))

    assert (cause and cause.key) == key


@pytest.mark.parametrize(("allocatable", "key"), [(0, "plugin_offers_nothing"), (7, None)])
def test_a_device_plugin_that_is_ready_may_offer_nothing(allocatable, key):
    cause = cause_of(signs(pod=a_pod(is_ready=True), gpus_expected=8, gpus_allocatable=allocatable))

    assert (cause and cause.key) == key


def test_a_plugin_that_offers_no_more_gpus_says_why_in_its_log():
    """intel-device-plugins-for-kubernetes #1710."""
    said = "I0412 15:28:48.082794       1 gpu_plugin.go:388] Not compatible device: version"

    cause = cause_of(signs("intel-gpu-plugin", a_pod(is_ready=True, log=[said]), gpus_expected=1))

    assert (cause.key, cause.quote) == ("intel_no_driver", said)
    assert cause.summary.startswith("The pod is ready, but the node offers no GPU.")


def test_a_pod_on_a_node_that_is_silent_is_old_news():
    assert cause_of(signs(pod=crashing("x"), is_node_ready=None)).key == "node_silent"


def test_a_pod_where_its_daemon_set_no_longer_wants_it():
    assert cause_of(signs(pod=a_pod(), labels={})).key == "misscheduled"


def test_more_memory_than_allowed():
    pod = a_pod(reason="OOMKilled", message="exit code 137, 3 restarts", container="nvidia-dcgm-exporter")

    assert cause_of(signs(pod=pod)).key == "out_of_memory"


def test_what_is_new_to_us_is_told_in_the_clusters_words():
    cause = cause_of(signs(pod=a_pod(phase="Pending", reason="SomethingNew", message="it said")))

    assert (cause.title, cause.quote) == ("Pod is stuck: SomethingNew", "it said")


PODS = st.builds(
    a_pod, phase=st.text(), reason=st.text(), message=st.text(), container=st.text(), log=st.lists(st.text())
)


@given(PODS, st.sampled_from(["driver", "device-plugin", "x"]))
def test_a_pod_that_is_not_ready_always_has_a_cause(pod, operand):
    assert cause_of(signs(operand, pod)).sentence


def test_a_ready_plugin_with_a_known_cause_says_first_that_the_node_offers_no_gpu():
    lost = "error starting plugins: error getting plugins: nvml: GPU is lost"
    cause = cause_of(signs(pod=a_pod(is_ready=True, is_overdue=True, log=[lost])))

    assert cause.key == "gpu_lost"
    assert cause.summary.startswith("The pod is ready, but the node offers no GPU. ")


NOT_LOADED = "nvidia driver modules are not yet loaded, invoking /usr/local/bin/runc directly"


@pytest.mark.parametrize(
    ("operand", "line", "key"),
    [
        ("dcgm", NOT_LOADED, "started_before_driver"),
        ("amd-metrics-exporter", "rocpclient.go:66: exec error :signal: aborted (core dumped)", "amd_profiler_crashes"),
        ("driver", "NVRM: GPU 0000:0a:00.0: RmInitAdapter failed! (0x24:0x72:1568)", "gpu_not_started"),
        ("driver", "NVLink Subnet Manager failed to start", "fabric_no_start"),
    ],
)
def test_a_ready_operand_that_does_not_do_its_work_has_a_cause_by_its_log(operand, line, key):
    ready = a_pod(is_ready=True, is_overdue=True, log=[line], is_log_of_ready=True)

    cause = cause_of(signs(operand, ready))

    assert cause.key == key
    assert cause.summary.startswith("The pod is ready, but a finding of the node says that its work is missing.")
    assert cause_of(signs(operand, replace(ready, is_log_of_ready=False))) is None


def test_what_the_installation_of_a_ready_driver_survived_is_no_cause():
    said = "ERROR: Unable to open 'kernel/dkms.conf' for copying (No such file or directory)"

    assert cause_of(signs("driver", a_pod(is_ready=True, log=[said], is_log_of_ready=True))) is None


def test_a_program_that_lost_its_devices_says_so_after_the_library_around_it():
    pod = a_pod(
        container="main", reason="CrashLoopBackOff", restarts=3, last_words="NVML error at line 135: 1",
        more_words=["Failed to initialize NVML: Unknown Error"],
    )  # fmt: skip

    assert why_waits(signs("", pod)).key == "devices_taken"
