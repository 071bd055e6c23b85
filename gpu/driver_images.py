"""The image that the operator would use for a version, derived from the present image. Pure.

The operator joins `<repository>/<image>:<version>-<system>`, and the spelling of the system changes between releases
(`rhel9.4`, then `rhel9`). Therefore only the version in the DaemonSet's own image is replaced.
"""

from gpu.versions import tag_of


def image_for(current: str, *, from_version: str, to_version: str) -> str:
    """Returns the image for `to_version`; empty if `current` contains neither version."""
    if "@" in current:
        return ""
    tag = tag_of(current)
    for version in (to_version, from_version):
        if version and (tag == version or tag.startswith(f"{version}-")):
            return f"{current.removesuffix(tag)}{to_version}{tag[len(version) :]}"
    return ""


def system_of(image: str, version: str) -> str:
    """Returns the operating system in an image tag, such as ubuntu22.04; empty if there is none."""
    return tag_of(image).removeprefix(version).removeprefix("-")
