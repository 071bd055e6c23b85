"""The server's address and the token, from the environment or from the file that `login` writes."""

import json
import os
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path

import httpx

from cli.failures import ExitCode, Failure

SERVER, TOKEN, CA_FILE = "QUARTERDECK_SERVER", "QUARTERDECK_TOKEN", "QUARTERDECK_CA_FILE"
SIGN_IN = "Sign in: quarterdeck login --server URL"
MOST_TOKEN = 200  # characters


@dataclass(frozen=True)
class Credentials:
    server: str
    token: str
    ca_file: str = ""  # blank: the system's certificates


def load_credentials() -> Credentials:
    """Returns the credentials. Variables override the file, but its token is sent to its own server only.

    :raises Failure: when the address or the token is missing, or others may read the file
    """
    stored = _stored()
    server = checked_address(os.environ.get(SERVER) or (stored.server if stored else ""))
    token = os.environ.get(TOKEN, "").strip()
    if not token and stored and stored.server == server:
        token = stored.token
    if not token:
        raise Failure(f"No token for {server}. {SIGN_IN}, or set {TOKEN}.", ExitCode.SIGNED_OUT)
    checked_token(token, source=TOKEN)
    return Credentials(server, token, os.environ.get(CA_FILE) or (stored.ca_file if stored else ""))


def checked_address(server: str) -> str:
    """Returns the address without its trailing slash.

    :raises Failure: when it is no http address, or would send the token in clear text to another machine
    """
    if not server:
        raise Failure(f"No server. {SIGN_IN}, or set {SERVER}.", ExitCode.SIGNED_OUT)
    try:
        address = httpx.URL(server)
    except httpx.InvalidURL:
        address = httpx.URL("")
    if address.scheme not in {"http", "https"} or not address.host or address.userinfo:
        raise Failure(f"{server} is not an address. Example: https://quarterdeck.example.com", ExitCode.USAGE)
    if address.scheme == "http" and not _is_loopback(address.host):
        raise Failure(
            f"{server} would send the token in clear text. Use https://{address.netloc.decode()}.", ExitCode.USAGE
        )
    return server.rstrip("/")


def read_token(path: Path) -> str:
    """Returns the token in a file.

    :raises Failure: when the file is missing, or others may read it
    """
    return checked_token(_private_text(path).strip(), source=str(path))


def checked_token(token: str, *, source: str) -> str:
    """Returns the token if it may be sent in a header.

    :raises Failure: when it is no token
    """
    if not token or len(token) > MOST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise Failure(f"{source} contains no token. A token is one word that begins with qd_.", ExitCode.USAGE)
    return token


def store(credentials: Credentials) -> Path:
    """Writes the file, readable for its owner only, and returns its path.

    :raises Failure: when the folder is not writable
    """
    path = _path()
    new = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(credentials), file)
        new.replace(path)
    except OSError as error:
        raise Failure(f"Cannot write {path}: {error}. Set QUARTERDECK_TOKEN instead.") from error
    return path


def forget() -> bool:
    """Removes the file. Returns False if there is none."""
    path = _path()
    was_there = path.exists()
    path.unlink(missing_ok=True)
    return was_there


def _path() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "quarterdeck" / "login.json"


def _stored() -> Credentials | None:
    path = _path()
    if not path.exists():
        return None
    try:
        return Credentials(**json.loads(_private_text(path)))
    except (ValueError, TypeError) as error:
        raise Failure(f"{path} is damaged. {SIGN_IN}", ExitCode.SIGNED_OUT) from error


def _private_text(path: Path) -> str:
    try:
        if mode := path.stat().st_mode & 0o077:
            raise Failure(f"Others may access {path} (mode bits {mode:03o}). Run: chmod 600 {path}", ExitCode.USAGE)
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"Cannot read {path}: {error}", ExitCode.USAGE) from error


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
