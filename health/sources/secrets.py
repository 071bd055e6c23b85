"""Secrets of sources and channels. A row names the place of a secret, and a process reads it when it needs it.

An admin chooses the place and the server that receives the secret. So only variables that begin with a prefix and files
of one folder are read, and only for the users listed beside the secret (Z39): QUARTERDECK_SOURCE_X_CLUSTERS beside
QUARTERDECK_SOURCE_X, and x.clusters beside the file x.
"""

import os
import re
import stat
from dataclasses import dataclass
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
        raise NotReadable(f"{name[:100]} points outside the folder")
    return path


def read_in_folder(name: str, *, at_most: int) -> bytes:
    """Returns a file's content, of at most `at_most` bytes.

    :raises NotReadable: for any reason, which only people with a shell may see
    """
    try:
        real = path_in_folder(name).resolve(strict=True)
        if not real.is_relative_to(Path(settings.SECRETS_DIR).resolve()):
            raise NotReadable(f"{name[:100]} is a link to a file outside the folder")
        # Without waiting for a writer, where the file is a pipe.
        with os.fdopen(os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotReadable(f"{name[:100]} is not a regular file")
            content = file.read(at_most + 1)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise NotReadable(str(error)) from error
    if len(content) > at_most:
        raise NotReadable(f"{name[:100]} is larger than {at_most} bytes")
    return content


AT_MOST = 16 << 10  # bytes: a token of a cloud's is 2 KiB
EVERYBODY = "*"
FILE_PLACE = "file:NAME for a file in the folder QUARTERDECK_SECRETS_DIR"


class NoSecret(Exception):
    """The place has no secret for this user, or is not a valid place.

    The sentence does not name the place: all users of the cluster can read it, and only admins may see the place. It
    does not distinguish a missing secret from one that this user may not use.
    """


@dataclass(frozen=True)
class SecretPlaces:
    """The places of the secrets of one kind of users, such as clusters. A user is listed by its name."""

    prefix: str  # of variables
    of_variable: str  # the suffix of the variable that lists the users of a secret
    of_file: str  # the suffix of the file that does
    user: str  # name of the user in sentences
    owner: str  # object that has the secret

    @property
    def places(self) -> str:
        return f"env:{self.prefix}NAME, or {FILE_PLACE}"

    @property
    def none(self) -> str:
        return (
            f"This place has no secret for this {self.user}. The operator of Quarterdeck must set the secret and "
            f"list the {self.user}s that may use it, in the variable {self.prefix}NAME{self.of_variable} or in "
            f"the file NAME{self.of_file}."
        )

    def check(self, place: str) -> None:
        """Checks that a secret of this place would be read.

        :raises NoSecret: when it would not
        """
        kind, _, name = place.partition(":")
        if kind == "env":
            self._check_variable(name)
        elif kind == "file":
            self._check_file(name)
        else:
            raise NoSecret(f"Name the place of the secret, never the secret itself: {self.places}.")

    def file_at(self, place: str, user: str) -> Path:
        """Returns the path of a secret file that this user may use.

        :raises NoSecret: when there is none for it
        """
        self.check(place)
        kind, _, name = place.partition(":")
        if kind != "file" or not self._may_use(kind, name, user) or not _read(kind, name):
            raise NoSecret(self.none)
        return path_in_folder(name)

    def secret_at(self, place: str, user: str) -> str:
        """Returns the secret for the user of this name; empty without a place.

        :raises NoSecret: when the user has none there, or it cannot be a password or token
        """
        if not place:
            return ""
        self.check(place)
        kind, _, name = place.partition(":")
        secret = _read(kind, name).strip()
        if not self._may_use(kind, name, user) or not secret:
            raise NoSecret(self.none)
        if not secret.isprintable() or not secret.isascii():
            raise NoSecret("The secret is not a password or token. It must be one line of ASCII.")
        if len(secret) < SHORTEST:
            raise NoSecret(
                f"The secret is too short to be removed from answers of the {self.owner}. It needs at least "
                f"{SHORTEST} characters."
            )
        return secret

    def _may_use(self, kind: str, name: str, user: str) -> bool:
        users = _read(kind, name + (self.of_variable if kind == "env" else self.of_file))
        return bool({user, EVERYBODY}.intersection(re.split(r"[,\s]+", users)))

    def _check_variable(self, name: str) -> None:
        is_setting = name in settings.SETTING_VARIABLES
        is_named = re.fullmatch(rf"{self.prefix}[A-Z0-9_]{{1,80}}", name)
        if is_setting or name.endswith(self.of_variable) or not is_named:
            raise NoSecret(f"That is not a variable for a secret. Its name must begin with {self.prefix}.")

    def _check_file(self, name: str) -> None:
        try:
            path = path_in_folder(name)
        except NotReadable as error:
            raise NoSecret("A secret is a file in the folder that QUARTERDECK_SECRETS_DIR names.") from error
        if path.name.endswith(self.of_file):
            raise NoSecret(f"A file with the suffix {self.of_file} lists {self.user}s. It is not a secret.")


# Clusters are never renamed: `add_cluster` names them once, from a shell.
SOURCE_SECRETS = SecretPlaces("QUARTERDECK_SOURCE_", "_CLUSTERS", ".clusters", "cluster", "source")


def _read(kind: str, name: str) -> str:
    """Returns the text at the place; empty if there is none."""
    if kind == "env":
        return os.environ.get(name, "")
    try:
        return read_in_folder(name, at_most=AT_MOST).decode(errors="replace")
    except NotReadable:
        return ""
