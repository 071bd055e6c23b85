"""GPU resources of a node: whole GPUs, slices and shares. Pure.

The three are never added: two pods on one time-sliced GPU share one GPU without isolation.
"""

from gpu.resources.clouds import product_in_labels, vendor_in_labels
from gpu.resources.expected_counts import expect
from gpu.resources.fractions import GpuFraction, fraction_of
from gpu.resources.layout import Layout, Way, amd_partition, layout_of, product_of
from gpu.resources.lines import ResourceLine, resource_lines
from gpu.resources.names import ResourceKind, Vendor, is_gpu_resource, product_in, vendor_of
from gpu.resources.offer import Counts, count, count_taken, most_by_labels, whole_gpus
from gpu.resources.physical import Use, Uses, boards_of, known_gpus, uses_in, uses_of
from gpu.resources.registered import Registered, asks_for_part, assigned_in, gpu_groups, registered_in
from gpu.resources.sharing_modes import Explanation, explain
from gpu.resources.terms import in_words, layout_in_words, missing_in_words, units_missing
from gpu.resources.unhealthy import Unhealthy, unhealthy_in, unhealthy_in_words, unhealthy_rows
