"""Lines that no table knows: the kind of error, and the object that is named nearest to it."""

import pytest

from health.stack.causes import Weight, cause_of, why_waits
from tests.health.stack.signs import a_pod, crashing, signs

FATAL = 'time="2026-11-30T10:00:00Z" level=fatal msg="starting the thing: {}"'


@pytest.mark.parametrize(
    ("error", "key", "names"),
    [
        ("mkdir /var/run/cdi2: operation not permitted", "unknown_access", "/var/run/cdi2"),
        ("dial tcp 10.1.2.3:5000: connect: connection refused", "unknown_refused", "10.1.2.3:5000"),
        ("dial unix /run/foo.sock: connect: no such file or directory", "unknown_socket", "/run/foo.sock"),
        ("lookup foo.bar on 10.0.0.10:53: no such host", "unknown_name", "foo.bar"),
        ("open /etc/foo/config.yaml: no such file or directory", "unknown_file", "/etc/foo/config.yaml"),
        ("no matches for kind Widget in version example.com/v1", "unknown_api_kind", "kubectl api-resources"),
        ("unlink /run/x: device or resource busy", "unknown_busy", "/run/x"),
        ("context deadline exceeded", "unknown_timeout", "the part in the line"),
        ("something that nobody has heard of", "crashed", "logs"),
    ],
)
def test_the_innermost_part_of_an_error_gives_its_kind_and_its_object(error, key, names):
    cause = cause_of(signs("dcgm-exporter", crashing(FATAL.format(error), container="ctr")))

    assert cause.key == key
    assert names in cause.action
    assert error in cause.sentence
    assert "No known cause" in cause.sentence or key == "crashed"


def test_a_reason_decides_and_not_the_words_of_its_callers():
    error = "checking the permission denied list: reading the cache: no space left on the shelf: i/o timeout"
    cause = cause_of(signs("dcgm-exporter", crashing(FATAL.format(error), container="ctr")))

    assert cause.key == "unknown_timeout"


@pytest.mark.parametrize(
    ("line", "key", "names"),
    [
        (
            '{"level":"error","msg":"Reconciler error","error":"open /host/x: operation not permitted"}',
            "unknown_access",
            "/host/x",
        ),
        (
            '2026-11-30T10:00:00Z\tERROR\tsetup\trunning\t{"error": "open /a/tls.crt: no such file or directory"}',
            "unknown_file",
            "/a/tls.crt",
        ),
        ("/entrypoint.sh: line 3: nvidia-foo: command not found", "unknown_missing", "nvidia-foo"),
        ("curl: (60) SSL certificate problem: self-signed certificate", "unknown_certificate", "the server"),
        ("Error response from daemon: toomanyrequests: reached the rate limit", "unknown_quota", "limit"),
    ],
)
def test_errors_of_other_formats_have_a_kind(line, key, names):
    cause = cause_of(signs("amd-config-manager", crashing("starting up", line, container="ctr")))

    assert cause.key == key
    assert names in cause.action


def test_a_tenants_line_of_no_known_cause_has_a_kind_too():
    cause = why_waits(signs("", crashing(last_words="fatal: mkdir /data/out: operation not permitted")))

    assert cause.key == "unknown_access"
    assert "/data/out" in cause.action


def test_a_line_without_an_error_has_no_kind():
    said = "UserWarning: this optimizer is not supported on all devices"

    assert why_waits(signs("", crashing(last_words=said, container="main"))).key == "tenant_crashed"


def test_the_kubelets_words_about_a_container_are_not_its_programs():
    """kuberay #2735."""
    ended = "back-off 5m0s restarting failed container=wait-gcs-ready (it ended with OOMKilled, exit code 137)"
    pod = a_pod(phase="Pending", reason="CrashLoopBackOff", message=ended, container="wait-gcs-ready", restarts=4)
    cause = why_waits(signs("", pod))

    assert cause.key == "host_memory"
    assert "wait-gcs-ready" in cause.title


@pytest.mark.parametrize(
    "line",
    [
        "+ echo 'could not resolve Linux kernel version'",
        'time="2026-11-30T09:59:59Z" level=info msg="libnvidia-ml.so.1: cannot open shared object file, trying again"',
    ],
)
def test_neither_a_traced_command_nor_information_hides_the_error(line):
    error = FATAL.format("dial tcp 10.1.2.3:5000: connect: connection refused")

    cause = cause_of(signs("dcgm-exporter", crashing(line, error, container="ctr")))

    assert cause.key == "unknown_refused"


def test_a_cause_that_names_no_reason_gives_way_to_a_line_that_does():
    pod = crashing(
        last_words="RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
        more_words=("NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus.", "RuntimeError: No CUDA GPUs are available"),
        container="main",
    )

    assert why_waits(signs("", pod)).key != "cuda_unknown"


@pytest.mark.parametrize(
    ("operand", "given", "key"),
    [
        ("mig-manager", {"mig_state": "failed", "mig_config": "all-1g.10gb"}, "mig_failed"),
        ("mig-manager", {"mig_state": "pending", "mig_config": "all-1g.10gb"}, "unknown_timeout"),
        ("cc-manager", {"labels": {"nvidia.com/cc.mode.state": "failed"}, "selector": {}}, "cc_failed"),
    ],
)
def test_a_state_that_failed_is_told_before_the_kind_of_an_error(operand, given, key):
    said = 'time="2026-11-30T10:00:00Z" level=error msg="waiting for pods to go: timed out waiting for the condition"'
    cause = cause_of(signs(operand, crashing(said), **given))

    assert (cause.key, cause.quote) == (key, said)


@pytest.mark.parametrize("operand", ["mig-manager", "cc-manager"])
def test_a_manager_that_cannot_start_is_told_before_the_state_that_it_left(operand):
    pod = a_pod(reason="StartError", last_words="something that nobody has heard of")
    given = {"labels": {"nvidia.com/cc.mode.state": "failed"}, "selector": {}, "mig_state": "failed"}

    assert cause_of(signs(operand, pod, **given)).key == "crashed"


def test_a_line_of_a_pod_that_is_coming_up_has_no_kind():
    retry = 'time="2026-11-30T10:00:00Z" level=error msg="pushing the first samples: connection refused, retrying"'
    cause = cause_of(signs("dcgm-exporter", a_pod(log=[retry])))

    assert (cause.key, cause.weight) == ("not_ready_yet", Weight.WAITING)
    assert why_waits(signs("", a_pod(last_words="ERROR: health check timeout, retrying", container="main"))) is None


@pytest.mark.parametrize("given", [{"is_overdue": True}, {"phase": "Failed"}, {"phase": ""}])
def test_a_line_of_a_pod_that_is_late_or_has_ended_has_a_kind(given):
    pod = a_pod(**{"last_words": "RuntimeError: etcd rendezvous failed: timeout", "container": "main"} | given)

    assert why_waits(signs("", pod)).key == "unknown_timeout"


@pytest.mark.parametrize(
    "line",
    [
        "BrokenPipeError: [Errno 32] Broken pipe",
        "KeyError: 'timeout'",
        "TypeError: connect() got an unexpected keyword argument 'timeout'",
        "ValueError: invalid value for the option depth",
        "RuntimeError: step 404 of 500 diverged",
        "RuntimeError: shape 403 x 12 and batch of 401",
        "RuntimeError: bad parameter timeout",
        "RuntimeError: Client(timeout=30) broke",
    ],
)
def test_a_name_or_a_number_in_an_error_is_no_kind(line):
    assert not why_waits(signs("", crashing(last_words=line, container="main"))).key.startswith("unknown_")


@pytest.mark.parametrize(
    ("error", "key"),
    [
        ("unexpected HTTP status 403", "unknown_rights"),
        ("HTTP/1.1 401", "unknown_rights"),
        ("refused: code=403", "unknown_rights"),
        ("status code: 404", "unknown_missing"),
        ("connection timeout", "unknown_timeout"),
        ("the read timed-out", "unknown_timeout"),
    ],
)
def test_a_status_of_an_answer_and_a_timeout_have_a_kind(error, key):
    assert cause_of(signs("dcgm-exporter", crashing(FATAL.format(error), container="ctr"))).key == key


@pytest.mark.parametrize(
    ("error", "key", "names"),
    [
        (f"{'/' * 60}: permission denied", "unknown_access", "the object in the line"),
        (f"open {'/' * 60}: permission denied", "unknown_access", "the object in the line"),
        ("open /.cache/x: permission denied", "unknown_access", "/.cache/x"),
        (f"unknown flag: {'-' * 60}", "unknown_setting", "the setting in the line"),
        ("unknown flag: --depth", "unknown_setting", "--depth"),
        (f"{'-' * 60} not found", "unknown_missing", "the object in the line"),
    ],
)
def test_a_ruler_in_a_line_is_no_object(error, key, names):
    cause = cause_of(signs("dcgm-exporter", crashing(FATAL.format(error), container="ctr")))

    assert (cause.key, names in cause.action) == (key, True)
