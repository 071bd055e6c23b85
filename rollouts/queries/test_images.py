"""Images of test Jobs, from the settings."""

from django.conf import settings

from rollouts.gates.test_job import TestJobGate


def image_of(gate: TestJobGate) -> str:
    """Returns the image of the gate's Jobs; blank if no setting names one for its template."""
    named = settings.TEST_IMAGES.get(gate.test.image, "") if gate.test else settings.TEST_JOB_IMAGE
    return gate.image or named
