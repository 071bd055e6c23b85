"""Other controllers that cordon or remove nodes, and the label or annotation that excludes a node (Z17, Z18). Pure.

The previous value is stored beside ours as a merge patch that restores it. So `kubectl` is enough if Quarterdeck is
removed (docs/takeover.md).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpu.labels import (
    AUTOSCALER_GOING,
    AUTOSCALER_LEAVE,
    EXCLUDED_BY,
    KARPENTER_LEAVE,
    KARPENTER_POOL,
    PUT_BACK,
    SENTINEL_MANAGED,
    SENTINEL_MARKS,
    SENTINEL_WATCHES,
)

LONGEST = 253  # of a previous value
LONGEST_PATCH = 4 * 1024

MetadataValues = dict[str, str | None]  # by key; None: absent, or to be removed


class MetadataPart(StrEnum):
    LABELS = "labels"
    ANNOTATIONS = "annotations"


@dataclass(frozen=True)
class Metadata:
    """Labels and annotations of a node: present ones, or ones to write."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)

    def value(self, controller: "ExternalController") -> str | None:
        return getattr(self, controller.part.value).get(controller.name)


@dataclass(frozen=True)
class ExternalController:
    key: str
    title: str  # name in a sentence
    part: MetadataPart
    name: str  # key of the label or annotation
    value: str  # the value that excludes the node

    @property
    def mark(self) -> str:
        return f"{self.name}={self.value}"


NVSENTINEL = ExternalController("nvsentinel", "NVSentinel", MetadataPart.LABELS, SENTINEL_MANAGED, "false")
KARPENTER = ExternalController("karpenter", "Karpenter", MetadataPart.ANNOTATIONS, KARPENTER_LEAVE, "true")
AUTOSCALER = ExternalController(
    "autoscaler", "the Cluster Autoscaler", MetadataPart.ANNOTATIONS, AUTOSCALER_LEAVE, "true"
)
EXTERNAL_CONTROLLERS = {controller.key: controller for controller in (NVSENTINEL, KARPENTER, AUTOSCALER)}


def is_watched(labels: Mapping[str, Any]) -> bool:
    """Tells whether NVSentinel's labeller, or a person for it, labelled the node, and it is not excluded altogether.

    The label of an exclusion from its monitors is never written or overwritten here: it shuts NVSentinel's eyes (Z18).
    """
    return labels.get(SENTINEL_WATCHES) != "false" and any(key.startswith(SENTINEL_MARKS) for key in labels)


def is_karpenters(labels: Iterable[str]) -> bool:
    return any(key in KARPENTER_POOL for key in labels)


def has_autoscalers_mark(metadata: Metadata, taints: Iterable[str]) -> bool:
    return AUTOSCALER_LEAVE in metadata.annotations or any(key in AUTOSCALER_GOING for key in taints)


def external_controllers_of(
    metadata: Metadata, taints: Iterable[str] = (), *, autoscaler_runs: bool = False
) -> list[ExternalController]:
    """Returns the controllers that may treat the changing node as broken or idle. Karpenter's nodes belong to it
    alone."""
    controllers = [NVSENTINEL] if is_watched(metadata.labels) else []
    if is_karpenters(metadata.labels):
        return [*controllers, KARPENTER]
    return [*controllers, AUTOSCALER] if autoscaler_runs or has_autoscalers_mark(metadata, taints) else controllers


def before(metadata: Metadata, controllers: Iterable[ExternalController]) -> dict[str, str | None]:
    """Returns the previous values by controller key, for controllers that do not exclude the node yet.

    For an exclusion left by a finished plan: the value before that plan.
    """
    left = earlier_values(metadata)
    values: dict[str, str | None] = {}
    for controller in controllers:
        value = metadata.value(controller)
        if value == controller.value and controller.key in left:
            values[controller.key] = left[controller.key]
        elif value != controller.value and _is_restorable(value):
            values[controller.key] = value
    return values


def excluded(metadata: Metadata, was: Mapping[str, str | None], owner: str) -> Metadata:
    """Returns the metadata that excludes the node. `was` has the previous values from `before`.

    Values that the owner wrote already are not written again, since a person may have changed them.
    """
    known = earlier_values(metadata) if metadata.annotations.get(EXCLUDED_BY) == owner else {}
    if was.keys() <= known.keys():
        return Metadata()
    labels: MetadataValues = {}
    annotations: MetadataValues = {EXCLUDED_BY: owner, PUT_BACK: _patch_text({**was, **known})}
    for controller in (EXTERNAL_CONTROLLERS[key] for key in was if key not in known):
        (labels if controller.part is MetadataPart.LABELS else annotations)[controller.name] = controller.value
    return Metadata(labels, annotations)


def as_before(metadata: Metadata, known: Mapping[str, str | None]) -> Metadata:
    """Returns the metadata that restores the previous values. Values that others changed stay.

    `known` has the previous values from our rows; they win over the annotation, which others can write.
    """
    labels: MetadataValues = {}
    annotations: MetadataValues = {EXCLUDED_BY: None, PUT_BACK: None}
    for key, was in {**earlier_values(metadata), **known}.items():
        controller = EXTERNAL_CONTROLLERS[key]
        if metadata.value(controller) == controller.value:
            (labels if controller.part is MetadataPart.LABELS else annotations)[controller.name] = was
    return Metadata(labels, annotations)


def earlier_values(metadata: Metadata) -> dict[str, str | None]:
    """Returns the previous values from the annotation, by controller key. Empty: none of our exclusions.

    Anyone with annotate permission can write that text, so only known keys and short values are read.
    """
    text = metadata.annotations.get(PUT_BACK) or ""
    if EXCLUDED_BY not in metadata.annotations or len(text) > LONGEST_PATCH:
        return {}
    try:
        patch = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    values_before: dict[str, str | None] = {}
    for controller in EXTERNAL_CONTROLLERS.values():
        values = _mapping_at(_mapping_at(patch, "metadata"), controller.part.value)
        if controller.name in values:
            was = values[controller.name]
            if was is None or (isinstance(was, str) and _is_restorable(was)):
                values_before[controller.key] = was
    return values_before


def _is_restorable(value: str | None) -> bool:
    """Tells whether a value can be restored exactly; other values are not overwritten."""
    return value is None or (len(value) <= LONGEST and value.isascii() and (value.isprintable() or not value))


def _mapping_at(whole: Any, key: str) -> dict[str, Any]:
    part = whole.get(key) if isinstance(whole, dict) else None
    return part if isinstance(part, dict) else {}


def _patch_text(before: Mapping[str, str | None]) -> str:
    parts: dict[str, MetadataValues] = {MetadataPart.LABELS: {}, MetadataPart.ANNOTATIONS: {}}
    for key, was in before.items():
        parts[EXTERNAL_CONTROLLERS[key].part][EXTERNAL_CONTROLLERS[key].name] = was
    parts[MetadataPart.ANNOTATIONS] |= {EXCLUDED_BY: None, PUT_BACK: None}
    filled = {part: values for part, values in parts.items() if values}
    return json.dumps({"metadata": filled}, sort_keys=True, separators=(",", ":"))
