"""From a kubeconfig and a context to a client configuration, with a plain sentence for everything that can be wrong."""

from pathlib import Path
from typing import Any

import yaml
from kubernetes import config
from kubernetes.client import Configuration

from kube.client import plugins
from kube.client.errors import BadKubeconfig

plugins.keep_secrets_from_them()


def load(kubeconfig: str, context: str) -> Configuration:
    """The configuration of one context. No kubeconfig: the service account of the pod we run in.

    :raises BadKubeconfig: with what is wrong
    """
    return _from_file(Path(kubeconfig).expanduser(), context) if kubeconfig else _from_pod()


def contexts_in(path: Path) -> list[str]:
    contexts = _read(path).get("contexts")
    entries = contexts if isinstance(contexts, list) else []
    return [str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry]


def _from_pod() -> Configuration:
    settings = Configuration()
    try:
        config.load_incluster_config(client_configuration=settings)
    except config.ConfigException as error:
        raise BadKubeconfig(
            f"We do not run in a pod with a service account ({error}). Name a kubeconfig and a context.",
        ) from error
    return settings


def _from_file(path: Path, context: str) -> Configuration:
    known = contexts_in(path)
    if context not in known:
        in_full = (
            f"{path} has no context “{context}”. It has: {', '.join(known)}."
            if known
            else f"{path} has no contexts at all: it is no kubeconfig, or an empty one."
        )
        raise BadKubeconfig("The kubeconfig does not have the context of this cluster.", in_full=in_full)
    settings = Configuration()
    try:
        # Nothing is written back: the file is the administrator's, and other tools read it too.
        config.load_kube_config(str(path), context, client_configuration=settings, persist_config=False)
    except Exception as error:  # the client walks through it unasked: any class, and often without words
        raise BadKubeconfig(
            "The context of this cluster cannot be used; `bin/manage doctor` says why.",
            in_full=f"Context “{context}” of {path} cannot be used: {worded(error)}",
        ) from error
    return settings


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadKubeconfig("The worker has no such kubeconfig.", in_full=f"There is no file {path}.") from error
    except OSError as error:
        said = f"cannot be read: {error.strerror}."
        raise BadKubeconfig(f"The kubeconfig {said}", in_full=f"{path} {said}") from error
    except Exception as error:  # a date that does not exist is a ValueError, a deep nest a RecursionError
        said = "is not YAML, so it is no kubeconfig."
        raise BadKubeconfig(f"The kubeconfig {said}", in_full=f"{path} {said}") from error
    if not isinstance(document, dict):
        said = "is none: its content is not a mapping."
        raise BadKubeconfig(f"The kubeconfig {said}", in_full=f"{path} {said}")
    return document


def worded(error: Exception) -> str:
    """What others raise may say nothing but its class."""
    return f"{type(error).__name__} {error}".strip()[:300]
