"""Labels of clouds: docs.aws.amazon.com/ec2, learn.microsoft.com/azure, cloud.google.com/compute, docs.oracle.com."""

import pytest

from gpu.labels import INSTANCE_TYPE
from gpu.resources import vendor_in_labels


@pytest.mark.parametrize(
    ("vendor", "machines"),
    [
        ("nvidia", "g4dn.xlarge p5en.48xlarge p6-b200.48xlarge gr6.4xlarge g6e.2xlarge p4de.24xlarge"),
        ("nvidia", "Standard_NC6s_v3 Standard_ND96isr_H100_v5 Standard_NCC40ads_H100_v5 Standard_NV36ads_A10_v5"),
        ("nvidia", "a2-highgpu-8g a3-megagpu-8g a4x-highgpu-4g g2-standard-4 g4-standard-48 BM.GPU.H100.8"),
        ("amd", "g4ad.xlarge Standard_ND96isr_MI300X_v5 Standard_NV4as_v4 Standard_NV4ads_V710_v5 BM.GPU.MI300X.8"),
        ("habana", "dl1.24xlarge"),
        (None, "inf2.xlarge trn1.2xlarge dl2q.24xlarge Standard_D4s_v5 Standard_NP10s e2-medium n1-standard-4"),
        (None, "a1.large c3-standard-4 m3-ultramem-32 p1 VM.Standard.E4.Flex rke2 k3s"),
    ],
)  # fmt: skip
def test_a_type_of_machine_that_always_has_gpus_shows_their_vendor(vendor, machines):
    found = {machine: vendor_in_labels({INSTANCE_TYPE: machine}) for machine in machines.split()}

    assert set(found.values()) == {vendor}, found
