"""Label: puts nodes into a pool by Quarterdeck's own label, the only one that the admission policy lets it choose."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fleet.models import Node
from gpu.labels import IN_POOL
from kube import client
from kube.structs import NodeSeen
from operations.refusals import BadOperation
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed
from operations.steps.options import TextOption

# A value of a label: kubernetes.io/docs/concepts/overview/working-with-objects/labels, "Syntax and character set".
VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


class LabelStep(NodeStep):
    key: ClassVar[str] = "label"
    options = (
        TextOption(
            "pool", "Pool; blank: remove the label",
            "Of the kind label: value of the label `quarterdeck.io/pool`. Blank: the label is removed.", longest=63,
        ),
    )  # fmt: skip
    takes_node: ClassVar[bool] = False

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        pool = options.get("pool") or ""
        if pool and not VALUE.fullmatch(pool):
            sentence = (
                "A value has at most 63 letters, digits, “-”, “_” and “.”, and begins and ends with one of the first."
            )
            raise BadOperation(("pool", sentence))
        return dict(options) | {"pool": pool}

    def run(self, work: NodeWork) -> StepResult:
        wanted = work.operation.options["pool"] or None

        def labelled(observed: NodeSeen) -> client.Patch:
            return client.node_patch(observed, labels={IN_POOL: wanted})

        observed = work.change_node(labelled)
        if observed.labels.get(IN_POOL) != wanted:
            return failed(f"The API server did not keep the label {IN_POOL}.")
        return done_result(f"Labelled {IN_POOL}={wanted}." if wanted else f"The label {IN_POOL} is removed.")
