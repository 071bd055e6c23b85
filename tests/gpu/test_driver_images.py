import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.driver_images import image_for, system_of

OLD, NEW = "580.95.05", "580.126.20"


@pytest.mark.parametrize(
    ("current", "wanted"),
    [
        (f"nvcr.io/nvidia/driver:{OLD}-ubuntu22.04", f"nvcr.io/nvidia/driver:{NEW}-ubuntu22.04"),
        (f"mirror:5000/gpu/driver:{OLD}-rhel9", f"mirror:5000/gpu/driver:{NEW}-rhel9"),
        (f"nvcr.io/nvidia/driver:{OLD}-rhcos4.16", f"nvcr.io/nvidia/driver:{NEW}-rhcos4.16"),
        (f"nvcr.io/nvidia/driver:{NEW}-ubuntu22.04", f"nvcr.io/nvidia/driver:{NEW}-ubuntu22.04"),
        (f"nvcr.io/nvidia/driver:{OLD}", f"nvcr.io/nvidia/driver:{NEW}"),
    ],
)
def test_only_the_version_of_what_the_operator_uses_is_replaced(current: str, wanted: str):
    assert image_for(current, from_version=OLD, to_version=NEW) == wanted


@pytest.mark.parametrize(
    "current",
    [
        "",
        "nvcr.io/nvidia/driver",
        "nvcr.io/nvidia/driver@sha256:0123",
        f"nvcr.io/nvidia/driver:{OLD}-ubuntu22.04@sha256:0123",
        "nvcr.io/nvidia/driver:580-5.15.0-69-generic-ubuntu22.04",
        "nvcr.io/nvidia/driver:570.86.15-ubuntu22.04",
        f"nvcr.io/nvidia/driver:{OLD}1-ubuntu22.04",
    ],
)
def test_of_what_names_neither_version_nobody_can_tell(current: str):
    assert image_for(current, from_version=OLD, to_version=NEW) == ""


@given(st.text(max_size=80))
def test_whatever_an_image_is_called_it_ends_in_the_version_and_its_system_or_is_not_told(current: str):
    image = image_for(current, from_version=OLD, to_version=NEW)

    assert not image or f":{NEW}" in image
    assert image_for(image, from_version=OLD, to_version=NEW) == image


def test_the_system_is_what_the_tag_says_after_the_version():
    assert system_of(f"nvcr.io/nvidia/driver:{NEW}-ubuntu22.04", NEW) == "ubuntu22.04"
    assert system_of(f"nvcr.io/nvidia/driver:{NEW}", NEW) == ""
