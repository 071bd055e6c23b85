"""The image that the operator would use for a version, told from the one that it uses now. Pure.

The operator joins `<repository>/<image>:<version>-<system>`, and which system it writes for a node changes from release
to release (`rhel9.4`, then `rhel9`). So nothing of it is put together here: the version in the driver DaemonSet's own
image is replaced, and all else stays as that operator wrote it.
"""

from gpu.versions import tag_of


def image_for(current: str, *, from_version: str, to_version: str) -> str:
    """`current`: of the driver's container now. Blank: it names neither version, so that nobody can tell."""
    if "@" in current:
        return ""
    tag = tag_of(current)
    for version in (to_version, from_version):
        if version and (tag == version or tag.startswith(f"{version}-")):
            return f"{current.removesuffix(tag)}{to_version}{tag[len(version) :]}"
    return ""


def system_of(image: str, version: str) -> str:
    """ubuntu22.04: the operating system that an image of this version is for. Blank: it names none."""
    return tag_of(image).removeprefix(version).removeprefix("-")
