"""The steps that an operation may have. To add one, add a file here and a line below."""

from operations.steps.base import Step
from operations.steps.cordon import Cordon
from operations.steps.drain import Drain
from operations.steps.uncordon import Uncordon

STEPS: dict[str, Step] = {step.key: step for step in (Cordon(), Drain(), Uncordon())}
