"""Secrets of sources. A row names the place of a secret, and a process reads the secret when it queries the source.

A cluster's admin chooses the place and the server that receives the secret. So only variables that begin with PREFIX
and files of one folder are read, and only for the clusters listed beside the secret (Z39):
QUARTERDECK_SOURCE_X_CLUSTERS beside QUARTERDECK_SOURCE_X, and x.clusters beside the file x.
"""

import os
import re
import stat
from pathlib import Path

from django.conf import settings

from wording.sent_secrets import SHORTEST


class NotReadable(Exception):
    """The folder has no such file, or it is no regular file, or it is too large."""


def path_in_folder(name: str) -> Path:
    """Returns the path of a file in the folder by its name, without touching the file.

    :raises NotReadable: when the name leads out of the folder
    """
    folder = Path(os.path.normpath(Path(settings.SECRETS_DIR).absolute()))
    path = Path(os.path.normpath(folder / name))
    if "\0" in name or path == folder or not path.is_relative_to(folder):
        raise NotReadable(f"{name[:100]} leads out of the folder")
    return path


def read_in_folder(name: str, *, at_most: int) -> bytes:
    """Returns a file's content, of at most `at_most` bytes.

    :raises NotReadable: for any reason, which only people with a shell may see
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


PREFIX = "QUARTERDECK_SOURCE_"
OF_VARIABLE, OF_FILE = "_CLUSTERS", ".clusters"  # what a list of clusters is called, after its secret
EVERY_CLUSTER = "*"
AT_MOST = 16 << 10  # bytes: a token of a cloud's is 2 KiB
PLACES = f"env:{PREFIX}NAME, or file:NAME for a file in the folder QUARTERDECK_SECRETS_DIR"
NONE_FOR_CLUSTER = (
    "There is no secret for this cluster at its source's place. Whoever runs Quarterdeck sets the secret and, beside "
    f"it, lists the clusters that may use it: in the variable {PREFIX}NAME{OF_VARIABLE}, or in the file NAME{OF_FILE}."
)
_NAME = re.compile(rf"{PREFIX}[A-Z0-9_]{{1,80}}")


class NoSecret(Exception):
    """The place has no secret for this cluster, or is not a valid place.

    The sentence does not name the place: all users of the cluster can read it, and only admins may see the place. It
    does not distinguish a missing secret from one that this cluster may not use.
    """


def check_place(place: str) -> None:
    """Checks that a secret of this place would be read.

    :raises NoSecret: when it would not
    """
    kind, _, name = place.partition(":")
    if kind == "env":
        _check_variable(name)
    elif kind == "file":
        _check_file(name)
    else:
        raise NoSecret(f"Say where the secret is, never the secret itself: {PLACES}.")


def secret_at(place: str, *, cluster: str) -> str:
    """Returns the secret for the cluster of this name; empty without a place.

    Clusters are never renamed: `add_cluster` names them once, from a shell.

    :raises NoSecret: when the cluster has none there, or it cannot be a password or token
    """
    if not place:
        return ""
    check_place(place)
    kind, _, name = place.partition(":")
    clusters = _read(kind, name + (OF_VARIABLE if kind == "env" else OF_FILE))
    secret = _read(kind, name).strip()
    if not {cluster, EVERY_CLUSTER}.intersection(re.split(r"[,\s]+", clusters)) or not secret:
        raise NoSecret(NONE_FOR_CLUSTER)
    if not secret.isprintable() or not secret.isascii():
        raise NoSecret("What is there is no password or token: one line of ASCII is.")
    if len(secret) < SHORTEST:
        raise NoSecret(
            f"The secret is too short to be cut out of what the source answers: {SHORTEST} characters are the least."
        )
    return secret


def _check_variable(name: str) -> None:
    is_setting = name in settings.SETTING_VARIABLES
    if is_setting or name.endswith(OF_VARIABLE) or not _NAME.fullmatch(name):
        raise NoSecret(f"That is no variable for a secret: its name begins with {PREFIX}, and no setting's does.")


def _check_file(name: str) -> None:
    try:
        path = path_in_folder(name)
    except NotReadable as error:
        raise NoSecret("A secret is a file in the folder that QUARTERDECK_SECRETS_DIR names.") from error
    if path.name.endswith(OF_FILE):
        raise NoSecret(f"A file whose name ends with {OF_FILE} lists clusters, and is no secret.")


def _read(kind: str, name: str) -> str:
    """Returns the text at the place; empty if there is none."""
    if kind == "env":
        return os.environ.get(name, "")
    try:
        return read_in_folder(name, at_most=AT_MOST).decode(errors="replace")
    except NotReadable:
        return ""
