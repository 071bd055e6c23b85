"""What a cluster's owner does before Quarterdeck may work in it: `kubectl apply -f deploy/rbac/quarterdeck.yaml`."""

from pathlib import Path

from kubernetes import config, utils

MANIFEST = Path(__file__).resolve().parents[1] / "deploy" / "rbac" / "quarterdeck.yaml"
IS_THERE = 409


def grant(kubeconfig: Path, context: str) -> None:
    """Apply the manifest; what is there already stays as it is."""
    client = config.new_client_from_config(config_file=str(kubeconfig), context=context)
    try:
        utils.create_from_yaml(client, str(MANIFEST))
    except utils.FailToCreateError as refusals:
        if any(refusal.status != IS_THERE for refusal in refusals.api_exceptions):
            raise
    finally:
        client.close()
