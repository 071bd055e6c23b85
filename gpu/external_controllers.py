"""Who else cordons nodes or takes them away, and by what each leaves one alone while it changes (Z17, Z18). Pure.

What was on the node before is written beside our value, as the very merge patch that puts it back: with Quarterdeck
gone, `kubectl` is enough (docs/takeover.md).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpu.labels import (
    AUTOSCALER_GOING,
    AUTOSCALER_LEAVE,
    KARPENTER_LEAVE,
    KARPENTER_POOL,
    OPTED_OUT_BY,
    PUT_BACK,
    SENTINEL_MANAGED,
    SENTINEL_MARKS,
)

LONGEST = 253  # of an earlier value
LONGEST_PATCH = 4 * 1024

MetadataValues = dict[str, str | None]  # by key; None: it is not there, or is to go


class MetadataPart(StrEnum):
    """Where on a node; in the words of its metadata."""

    LABELS = "labels"
    ANNOTATIONS = "annotations"


@dataclass(frozen=True)
class Metadata:
    """Of a node: what is there, or what is to be written."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)

    def value(self, neighbour: "Neighbour") -> str | None:
        return getattr(self, neighbour.part.value).get(neighbour.name)


@dataclass(frozen=True)
class Neighbour:
    key: str
    title: str  # as a sentence names it
    part: MetadataPart
    name: str  # of the label or annotation
    value: str  # with which it leaves the node alone

    @property
    def mark(self) -> str:
        return f"{self.name}={self.value}"


NVSENTINEL = Neighbour("nvsentinel", "NVSentinel", MetadataPart.LABELS, SENTINEL_MANAGED, "false")
KARPENTER = Neighbour("karpenter", "Karpenter", MetadataPart.ANNOTATIONS, KARPENTER_LEAVE, "true")
AUTOSCALER = Neighbour("autoscaler", "the Cluster Autoscaler", MetadataPart.ANNOTATIONS, AUTOSCALER_LEAVE, "true")
NEIGHBOURS = {one.key: one for one in (NVSENTINEL, KARPENTER, AUTOSCALER)}


def is_watched(labels: Iterable[str]) -> bool:
    """NVSentinel's labeller, or a person for it, has left a label on the node."""
    return any(key.startswith(SENTINEL_MARKS) for key in labels)


def is_karpenters(labels: Iterable[str]) -> bool:
    return any(key in KARPENTER_POOL for key in labels)


def has_autoscalers_mark(seen: Metadata, taints: Iterable[str]) -> bool:
    return AUTOSCALER_LEAVE in seen.annotations or any(key in AUTOSCALER_GOING for key in taints)


def neighbours_of(seen: Metadata, taints: Iterable[str] = (), *, autoscaler_runs: bool = False) -> list[Neighbour]:
    """Those that may take this node for broken, or for idle, while it changes. What Karpenter made no other takes."""
    found = [NVSENTINEL] if is_watched(seen.labels) else []
    if is_karpenters(seen.labels):
        return [*found, KARPENTER]
    return [*found, AUTOSCALER] if autoscaler_runs or has_autoscalers_mark(seen, taints) else found


def before(seen: Metadata, those: Iterable[Neighbour]) -> dict[str, str | None]:
    """Neighbour's key → what its label or annotation is now, of those that do not leave the node alone yet.

    Of those that a plan which is over has left here: what it was before that one.
    """
    left = earlier_values(seen)
    found: dict[str, str | None] = {}
    for one in those:
        value = seen.value(one)
        if value == one.value and one.key in left:
            found[one.key] = left[one.key]
        elif value != one.value and _can_be_kept(value):
            found[one.key] = value
    return found


def opted_out(seen: Metadata, was: Mapping[str, str | None], owner: str) -> Metadata:
    """What is written so that these leave the node alone. `was`: by neighbour's key, as `before` says it.

    What the owner has written already is not written again: somebody may have changed it since.
    """
    known = earlier_values(seen) if seen.annotations.get(OPTED_OUT_BY) == owner else {}
    if was.keys() <= known.keys():
        return Metadata()
    labels: MetadataValues = {}
    annotations: MetadataValues = {OPTED_OUT_BY: owner, PUT_BACK: _written({**was, **known})}
    for one in (NEIGHBOURS[key] for key in was if key not in known):
        (labels if one.part is MetadataPart.LABELS else annotations)[one.name] = one.value
    return Metadata(labels, annotations)


def as_before(seen: Metadata, known: Mapping[str, str | None]) -> Metadata:
    """What is written so that all is as it was. What somebody has changed since is left.

    `known`: what our rows say was there, by neighbour's key: it counts before the annotation, which others can write.
    """
    labels: MetadataValues = {}
    annotations: MetadataValues = {OPTED_OUT_BY: None, PUT_BACK: None}
    for key, was in {**earlier_values(seen), **known}.items():
        one = NEIGHBOURS[key]
        if seen.value(one) == one.value:
            (labels if one.part is MetadataPart.LABELS else annotations)[one.name] = was
    return Metadata(labels, annotations)


def earlier_values(seen: Metadata) -> dict[str, str | None]:
    """Neighbour's key → what it was before it was ours, as the annotation beside it says. Empty: nothing is ours.

    Anybody who may annotate a node can write that text: only keys of neighbours are read from it, and only short text.
    """
    text = seen.annotations.get(PUT_BACK) or ""
    if OPTED_OUT_BY not in seen.annotations or len(text) > LONGEST_PATCH:
        return {}
    try:
        patch = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, str | None] = {}
    for one in NEIGHBOURS.values():
        values = _inside(_inside(patch, "metadata"), one.part.value)
        if one.name in values:
            was = values[one.name]
            if was is None or (isinstance(was, str) and _can_be_kept(was)):
                found[one.key] = was
    return found


def _can_be_kept(value: str | None) -> bool:
    """What is put back must be what was there: text that none of these reads is left alone instead."""
    return value is None or (len(value) <= LONGEST and value.isascii() and (value.isprintable() or not value))


def _inside(whole: Any, key: str) -> dict[str, Any]:
    part = whole.get(key) if isinstance(whole, dict) else None
    return part if isinstance(part, dict) else {}


def _written(before: Mapping[str, str | None]) -> str:
    parts: dict[str, MetadataValues] = {MetadataPart.LABELS: {}, MetadataPart.ANNOTATIONS: {}}
    for key, was in before.items():
        parts[NEIGHBOURS[key].part][NEIGHBOURS[key].name] = was
    parts[MetadataPart.ANNOTATIONS] |= {OPTED_OUT_BY: None, PUT_BACK: None}
    written = {part: values for part, values in parts.items() if values}
    return json.dumps({"metadata": written}, sort_keys=True, separators=(",", ":"))
