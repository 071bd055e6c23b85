import pytest

from health.stack.causes import cause_of, why_waits
from tests.health.stack.signs import a_pod, an_event, signs

IMAGE = "nvcr.io/nvidia/driver:580.126.20-ubuntu24.04"
PULL = f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": '


def pulling(message: str, *events, **given):
    pod = a_pod(phase="Pending", reason="ImagePullBackOff", message=message, image=IMAGE, events=events)
    return cause_of(signs("driver", pod, **given))


@pytest.mark.parametrize(
    ("said", "key"),
    [
        (f"rpc error: code = NotFound desc = {PULL}{IMAGE}: not found", "image_no_such_tag"),
        ("manifest unknown: manifest unknown", "image_no_such_tag"),
        (f"{PULL}failed to authorize: unexpected status: 401 Unauthorized", "image_not_allowed"),
        (f"{PULL}pull access denied, repository does not exist or may require authorization", "image_not_allowed"),
        (f"{PULL}unexpected status code: 429 Too Many Requests", "image_rate_limited"),
        ("toomanyrequests: You have reached your pull rate limit.", "image_rate_limited"),
        (f"{PULL}dial tcp: lookup nvcr.io on 10.0.0.2:53: no such host", "image_registry_unknown"),
        (f"{PULL}dial tcp 1.2.3.4:443: i/o timeout", "image_registry_unreachable"),
        (f"{PULL}tls: failed to verify certificate: x509: unknown authority", "image_registry_untrusted"),
        ("write /var/lib/containerd/x: no space left on device", "image_no_room"),
        ("no match for platform in manifest: not found", "image_other_machine"),
        ("something new", "image_pull"),
    ],
)
def test_the_causes_are_told_apart(said, key):
    cause = pulling(f'Back-off pulling image "{IMAGE}": ErrImagePull: {said}')

    assert cause.key == key
    assert said in cause.quote


def test_a_pod_that_only_backs_off_is_explained_by_its_events():
    failed = an_event(f'Failed to pull image "{IMAGE}": {PULL}{IMAGE}: not found', "Failed")
    cause = pulling(f'Back-off pulling image "{IMAGE}"', failed)

    assert cause.key == "image_no_such_tag"
    assert cause.title == f"Image does not exist: {IMAGE}"
    assert "Ubuntu 24.04.2 LTS" in cause.action


def test_a_precompiled_driver_is_missing_for_a_kernel():
    image = "nvcr.io/nvidia/driver:580-6.8.0-60-generic-ubuntu24.04"
    cause = pulling(f'Back-off pulling image "{image}": ErrImagePull: {image}: not found')

    assert "no precompiled driver for kernel 6.8.0-60-generic" in cause.summary


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ('error pinging docker registry nvcr.io: Get "https://nvcr.io/v2/": Method Not Allowed',
         "image_registry_failing"),  # gpu-operator #199, CRI-O behind a proxy
        ('pinging container registry nvcr.io: Get "https://nvcr.io/v2/": dial tcp: lookup nvcr.io: no such host',
         "image_registry_unknown"),
        ('pinging container registry r: Get "https://r/v2/": x509: certificate signed by unknown authority',
         "image_registry_untrusted"),
        ("unexpected status from HEAD request to https://nvcr.io/v2/x: 503 Service Unavailable",
         "image_registry_failing"),
        ("unexpected status from HEAD request to https://nvcr.io/v2/x: 403 Forbidden", "image_not_allowed"),  # #1020
        ("failed to copy: httpReadSeeker: failed open: server message: insufficient_scope: authorization failed",
         "image_not_allowed"),  # nim-deploy #42
        ('failed commit on ref "layer-sha256:b4e7": unexpected commit digest sha256:d3fb, expected sha256:b4e7',
         "image_broken"),  # public-image-mirror #1441
        ("reading manifest 570.148.08-scos4.18 in nvcr.io/nvidia/driver: manifest unknown", "image_no_such_tag"),
        ("Source image rejected: A signature was required, but no signature exists", "image_signature"),
    ],
)  # fmt: skip
def test_more_of_what_runtimes_say_of_a_pull(message, key):
    assert (
        cause_of(signs("driver", a_pod(reason="ErrImagePull", message=message, image="nvcr.io/nvidia/driver:1"))).key
        == key
    )


@pytest.mark.parametrize("reason", ["RegistryUnavailable", "SignatureValidationFailed"])
def test_every_reason_of_the_kubelet_for_an_image_is_one(reason):
    assert cause_of(signs("driver", a_pod(reason=reason, message=""))).key.startswith("image_")


def test_events_of_a_tenants_pod_have_the_answer_between_two_tries():
    answer = an_event('Failed to pull image "team/serve:1": insufficient_scope: authorization failed', "Failed")
    pod = a_pod(phase="Pending", reason="ImagePullBackOff", message="Back-off pulling image", events=[answer])

    cause = why_waits(signs("", pod, is_placed=True))

    assert (cause.key, cause.quote) == ("image_not_allowed", answer.message)
