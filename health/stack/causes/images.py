"""Why an image cannot be pulled, told from what the container runtime says. Pure.

containerd: `rpc error: code = NotFound desc = failed to pull and unpack image "…": failed to resolve reference "…":
…: not found`; a registry without that tag: `manifest unknown`; without credentials: `401 Unauthorized`, `pull access
denied`, `authorization failed`; too many pulls: `429 Too Many Requests`, `toomanyrequests`. Name resolution and
connections fail in Go's words: `no such host`, `i/o timeout`, `connection refused`, `x509: …`. CRI-O: `reading manifest
… in …: manifest unknown`, `error pinging docker registry …` (gpu-operator #199). Reasons: pkg/kubelet/images.
A precompiled driver's image is missing where the kernel moved before NVIDIA built one (gpu-operator #910, #682, #1203).
"""

import re

from gpu.operands import DRIVER
from gpu.versions import read, tag_of
from health.stack.causes.base import Cause, CauseRule, PodSigns, Signs, Weight, words

PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
                     "RegistryUnavailable", "SignatureValidationFailed"})  # fmt: skip
QUOTED = re.compile(r'image \\?"([^"\\]+)\\?"')

NEEDS_SECRET = frozenset({"image_not_allowed", "image_no_such_tag", "image_pull"})
LOST_SECRET = (
    "A pull secret that the pod names is not in its namespace.",
    "Make the Secret there (type kubernetes.io/dockerconfigjson), or take its name out of imagePullSecrets.",
)

# In this order: a proxy that refuses a name answers in words of several of these.
REASONS: tuple[tuple[str, re.Pattern[str], str, str], ...] = (
    (
        "image_rate_limited",
        words("toomanyrequests", "too many requests", "rate limit"),
        "The registry refuses more pulls for now: its rate limit is reached.",
        "It is tried again by itself. For good: a pull secret, or a mirror of the image.",
    ),
    (
        "image_not_allowed",
        words("unauthorized", "authentication required", "access denied", "forbidden", "authorization failed",
              "no basic auth", "insufficient_scope"),
        "The registry does not let this cluster pull the image.",
        "Look at its imagePullSecrets, and whether the key in them still works.",
    ),
    (
        "image_registry_unknown",
        words("no such host", "server misbehaving", "temporary failure in name resolution"),
        "The name of the registry cannot be resolved on the node.",
        "Look at the image's repository, and at DNS on the node.",
    ),
    (
        "image_registry_unreachable",
        words("i/o timeout", "connection refused", "connection reset", "no route to host", "tls handshake timeout",
              "context deadline exceeded", "network is unreachable", "proxyconnect"),
        "The node cannot reach the registry.",
        "Look at the node's network and proxy, and whether the registry is up.",
    ),
    (
        "image_registry_untrusted",
        words("x509", "certificate signed by unknown authority", "server gave http response to https client"),
        "The node does not trust the registry's certificate.",
        "Give the node's container runtime the authority that signed it.",
    ),
    (
        "image_no_room",
        words("no space left on device"),
        "The node's disk is full: the image does not fit.",
        "Make room where the container runtime keeps its images.",
    ),
    (
        "image_broken",
        words("unexpected commit digest", "unexpected content digest", "failed to validate layer"),
        "What the node got of the image is not what the registry says it has: it broke on the way or on the node.",
        "Look at proxies and mirrors between; then remove the image's content from the node's container runtime.",
    ),
    (
        "image_signature",
        words("signature validation failed", "source image rejected", "signature.*(required|not accepted)"),
        "The node does not accept the image's signature.",
        "Look at the node's policy for signatures: containers-policy.json, or OpenShift's ClusterImagePolicy.",
    ),
    (
        "image_registry_failing",
        words(r"unexpected status.*\b5\d\d\b", "bad gateway", "service unavailable", "gateway time-?out",
              "internal server error", "too many redirects", "registryunavailable", "error pinging docker registry",
              "pinging container registry", r"\bEOF\b"),
        "The registry, or a proxy before it, does not answer as it should.",
        "It is tried again by itself. If it lasts, look at the proxy and the registry.",
    ),
    (
        "image_other_machine",
        words("no match for platform", "no matching manifest"),
        "There is no such image for this node's processor.",
        "Look at whether the version is built for the node's architecture.",
    ),
    (
        "image_no_such_tag",
        words("manifest unknown", "not found", "code = NotFound", "does not exist"),
        "There is no such image.",
        "Look at repository, name and version where the image is set: each is joined as repository/name:version.",
    ),
)  # fmt: skip


def image_pull(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or pod.reason not in PULLING:
        return None
    said = _telling(signs)
    image = _image(signs)
    key, sentence, action = _reason(said)
    if key in NEEDS_SECRET and (lost := _lost_secret(pod)):
        key, sentence, action, said = "image_pull_secret", *LOST_SECRET, lost
    if key == "image_no_such_tag":
        sentence, action = f"There is no image {image}.", _missing_tag(signs, image) or action
    return Cause(key, Weight.WRONG, sentence, action, said)


def _lost_secret(pod: PodSigns) -> str:
    """The Event FailedToRetrieveImagePullSecret (kubernetes, pkg/kubelet/kubelet_pods.go)."""
    return next((event.message for event in pod.events if "image pull secret" in event.message), "")


def _reason(said: str) -> tuple[str, str, str]:
    for key, pattern, sentence, action in REASONS:
        if pattern.search(said):
            return key, sentence, action
    return "image_pull", "Its image cannot be pulled.", "kubectl describe of the pod shows what the registry answered."


def _telling(signs: Signs) -> str:
    """Between two tries a pod only says that it backs off: then its Events tell why."""
    pod = signs.pod
    said = [pod.message, *(event.message for event in pod.events)] if pod else []
    return next((line for line in said if any(pattern.search(line) for _, pattern, _, _ in REASONS)), said[0])


def _image(signs: Signs) -> str:
    pod = signs.pod
    found = QUOTED.search(pod.message) if pod else None
    return found.group(1) if found else (pod.image if pod else "")


def _missing_tag(signs: Signs, image: str) -> str:
    kernel = read(tag_of(image)).kernel
    if signs.operand != DRIVER:
        return ""
    if kernel:
        return (
            f"NVIDIA has built no precompiled driver for kernel {kernel}: boot a kernel that has one, or let the "
            "driver be compiled on the node (usePrecompiled: false)."
        )
    return f"Look whether NVIDIA has built this driver version for {signs.os_image or 'the system of this node'}."


RULES: tuple[CauseRule, ...] = (image_pull,)
