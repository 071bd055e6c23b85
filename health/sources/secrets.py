"""Where the secret of a source is found. A row says where, and a worker looks when it asks; nobody else ever does.

Whoever may name a place could otherwise send any file or variable of ours to a server of theirs: only variables that
begin with PREFIX and files in one folder are read.
"""

import os
import re
from pathlib import Path

from django.conf import settings

PREFIX = "QUARTERDECK_SECRET_"
AT_MOST = 16 << 10  # bytes: a token of a cloud's is 2 KiB
_IN_FOLDER = "in the folder that QUARTERDECK_SECRETS_DIR names"
_NAME = re.compile(rf"{PREFIX}[A-Z0-9_]{{1,80}}")


class NoSecret(Exception):
    """It is not where the row says, or that is no place for one.

    Its sentence does not say where: whoever sees the cluster reads it, and only admins see the place.
    """


def check_place(place: str) -> None:
    """:raises NoSecret: when nothing would be read there"""
    kind, _, name = place.partition(":")
    if kind == "env":
        if not _NAME.fullmatch(name):
            raise NoSecret(f"That is no variable for a secret: its name begins with {PREFIX}.")
    elif kind == "file":
        _path(name)
    else:
        raise NoSecret(f"Say env:{PREFIX}NAME, or file:NAME {_IN_FOLDER}: never the secret itself.")


def secret_at(place: str) -> str:
    """Blank for no place.

    :raises NoSecret: it is not there, or cannot be a password or token
    """
    if not place:
        return ""
    check_place(place)
    kind, _, name = place.partition(":")
    secret = os.environ.get(name, "") if kind == "env" else _content(_path(name))
    secret = secret.strip()
    if not secret:
        raise NoSecret("Its secret is empty, or not there: where it is found there is none for the worker.")
    if not secret.isprintable() or not secret.isascii():
        raise NoSecret("What is there is no password or token: one line of ASCII is.")
    return secret


def _path(name: str) -> Path:
    folder = Path(settings.SECRETS_DIR).resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise NoSecret(f"Its secret is not {_IN_FOLDER}, the only one that secrets are read from.")
    return path


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(AT_MOST).decode()
    except OSError as error:
        raise NoSecret(f"Its secret cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NoSecret("Its secret cannot be read: it is no text.") from error
