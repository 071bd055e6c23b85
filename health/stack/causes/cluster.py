"""What keeps any operand down that is the cluster's or the node's, and not of GPUs at all. Pure.

client-go: `… is forbidden: User "system:serviceaccount:…" cannot list resource …`, `dial tcp 10.96.0.1:443: i/o
timeout`, `the server could not find the requested resource (post nodefeatures.nfd.k8s-sigs.io)`; runc: `exec format
error`; the kernel: `bind: address already in use`, `no space left on device`; kubernetes, pkg/kubelet/prober:
`Liveness probe failed`. node-feature-discovery: workers that report to nfd-master (gpu-operator #429, k8s-device-plugin
#438; kubernetes-sigs/node-feature-discovery #539). Settings that a program refuses: Go's net ("missing port in
address": gpu-monitoring-tools #111), urfave/cli ("could not parse … as int value for flag": #94), flag ("flag provided
but not defined") and pflag ("unknown flag").
"""

from gpu.operands import GFD, NFD
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words
from health.stack.causes.crash import CRASHES
from kube.log_lines import LineWeight, weight

NO_NFD_API = Saying(
    "nfd_not_served",
    words(r"could not find the requested resource \(\w+ nodefeature", "no matches for kind \\\\?\"nodefeature",
          r"nodefeature\S*nfd\.k8s-sigs\.io\S* not found"),
    "The API server does not know NodeFeatures, by which features of a node are told.",
    "Install the definitions of node feature discovery (nfd-api-crds.yaml), of its own version.",
)  # fmt: skip
NO_NFD_MASTER = Saying(
    "nfd_master_unreachable",
    words(r"(node-feature-discovery|nfd)-master.{0,300}(no such host|connection refused|i/o timeout|deadline)",
          r"failed to advertise (labels|features)"),
    "It cannot reach nfd-master, which writes the labels of this node's features: operands select nodes by these.",
    "Look at the pod and the Service of nfd-master, at cluster DNS, and at the network between this node and that pod.",
    frozenset({NFD, GFD}),
)  # fmt: skip
FORBIDDEN = Saying(
    "api_forbidden",
    words(r"is forbidden: user", r"cannot (get|list|watch|create|patch|update|delete) resource"),
    "The API server refuses what it asks for: its service account has no such rule.",
    "What it says names the rule. Install the chart again that made it: roles and pods are of one version.",
)
NO_API = Saying(
    "api_unreachable",
    words(r"dial tcp \S+:(443|6443):? i/o timeout",
          r"dial tcp \S+:(443|6443): connect: (connection refused|no route to host|network is unreachable)",
          r"https://\S+:(443|6443)/\S*: (net/http|context deadline)", "dial tcp: lookup kubernetes.default"),
    "It cannot reach the API server from this node.",
    "Look at the network plugin, kube-proxy and cluster DNS on the node.",
)  # fmt: skip
OTHER_MACHINE = Saying(
    "other_machine",
    words("exec format error"),
    "Its image is built for another processor than this node's.",
    "Take an image that is built for the node's architecture (kubernetes.io/arch).",
)
OTHER_LIBC = Saying(
    "other_libc",
    words(r"version `?GLIBC(XX)?_[\d.]+' not found"),
    "A program of its image, or one of the host's that it calls, was built for a newer C library than it finds.",
    "Take the image for the node's system (the end of its tag names it), or a newer system on the node.",
)
SETTING = Saying(
    "bad_setting",
    words(r"listen \S+: address \S+: (missing port|too many colons) in address",
          r"could not parse .{1,80} as \w+ value .{0,60}flag", r"invalid value .{1,80} for flag -",
          "flag provided but not defined", r"^(error: )?unknown (shorthand )?flag: "),
    "It refuses a setting that it is given: an argument or a variable of its environment.",
    "The line names it. Look at args and env of its DaemonSet: they must be of the image's release.",
)  # fmt: skip
PORT_TAKEN = Saying(
    "port_taken",
    words("address already in use"),
    "A port that it listens on is taken on this node.",
    "ss -ltnp on the node says by whom: most often another exporter, or DCGM on the host.",
)
DISK_FULL = Saying(
    "disk_full",
    words("no space left on device"),
    "The node's disk is full.",
    "Make room on the node: images, logs and emptyDirs are what fills it.",
)


def killed_by_probe(signs: Signs) -> Cause | None:
    """The kubelet ends a container whose liveness or startup probe fails: its own log then says nothing wrong."""
    pod = signs.pod
    if pod is None or pod.reason not in CRASHES or weight(pod.telling or " ") >= LineWeight.ERROR:
        return None
    failing = ("Liveness probe failed", "Startup probe failed")
    said = next((event.message for event in pod.events if event.message.startswith(failing)), "")
    if not said:
        return None
    return Cause(
        "killed_by_probe",
        Weight.WRONG,
        f"{pod.of_it} is ended by the kubelet, again and again: its {said.split()[0].lower()} probe fails.",
        "What the probe says is why. One that times out is too short for a node with many GPUs, or for one whose "
        "driver answers slowly (no persistence mode).",
        said,
    )


RULES: tuple[CauseRule, ...] = (
    NO_NFD_API,
    FORBIDDEN,
    NO_NFD_MASTER,
    NO_API,
    OTHER_MACHINE,
    OTHER_LIBC,
    SETTING,
    PORT_TAKEN,
    DISK_FULL,
)
LAST: tuple[CauseRule, ...] = (killed_by_probe,)
