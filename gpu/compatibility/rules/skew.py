"""Evaluates a node's kubelet against its cluster's API server."""

from collections.abc import Iterator

from gpu.compatibility.case import Case
from gpu.compatibility.ranges import minor
from gpu.compatibility.verdicts import Support, Verdict

RULE = "skew"


def evaluate(case: Case) -> Iterator[Verdict]:
    kubelet, server = minor(case.facts.kubelet), minor(case.facts.kubernetes)
    entry = next((each for each in case.matrix.skew if case.facts.kubelet in each.kubelet), None)
    if len(kubelet) < 2 or len(server) < 2 or kubelet[0] != server[0] or entry is None:
        return  # other rules report an unknown Kubernetes version
    older = server[1] - kubelet[1]
    names = f"Kubelet {kubelet[0]}.{kubelet[1]}, API server {server[0]}.{server[1]}"
    if older < 0:
        sentence = "A kubelet must not be newer than the API server. This combination is untested."
        action = "Finish the control plane's update, or return the node to the minor version of the control plane."
        yield entry.verdict(RULE, names, Support.UNSUPPORTED, sentence, action)
    elif older > entry.older:
        sentence = f"The kubelet is {older} minor versions older than the API server; {entry.older} are allowed."
        yield entry.verdict(
            RULE, names, Support.UNSUPPORTED, sentence, "Update the nodes, one minor version after the other."
        )
    else:
        sentence = (
            f"A kubelet may be up to {entry.older} minor versions older than the API server. Here: {older or 'none'}."
        )
        yield entry.verdict(RULE, names, Support.SUPPORTED, sentence)
