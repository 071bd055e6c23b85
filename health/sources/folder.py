"""Files that sources read: secrets and CAs, all from the one folder that QUARTERDECK_SECRETS_DIR names.

Whoever administers a cluster gives their names. Links are followed within the folder only, as Kubernetes mounts a
Secret, and a device or a pipe is never read.
"""

import os
import stat
from pathlib import Path

from django.conf import settings


class NotReadable(Exception):
    """The folder has no such file, the file is no regular one, or it is too large."""


def path_in_folder(name: str) -> Path:
    """Return the path of a file of the folder, by its name. It touches no file.

    :raises NotReadable: the name leads out of the folder
    """
    folder = Path(os.path.normpath(Path(settings.SECRETS_DIR).absolute()))
    path = Path(os.path.normpath(folder / name))
    if "\0" in name or path == folder or not path.is_relative_to(folder):
        raise NotReadable(f"{name[:100]} leads out of the folder")
    return path


def read_in_folder(name: str, *, at_most: int) -> bytes:
    """Return a file's content. `at_most`: bytes.

    :raises NotReadable: for whatever reason; only who has a shell may read which
    """
    try:
        real = path_in_folder(name).resolve(strict=True)
        if not real.is_relative_to(Path(settings.SECRETS_DIR).resolve()):
            raise NotReadable(f"{name[:100]} is a link out of the folder")
        # Without waiting for a writer, where the file is a pipe.
        with os.fdopen(os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotReadable(f"{name[:100]} is no regular file")
            content = file.read(at_most + 1)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise NotReadable(str(error)) from error
    if len(content) > at_most:
        raise NotReadable(f"{name[:100]} is larger than {at_most} bytes")
    return content
