"""The service level that somebody chose: a ready-made indicator, or an expression of one's own. Pure."""

from dataclasses import dataclass

from health.telemetry.service_levels.expression import Expression, read_expression
from health.telemetry.service_levels.indicators import INDICATORS


@dataclass(frozen=True)
class ServiceLevelDefinition:
    """Raises ValueError if made of anything else. An expression replaces the indicator."""

    indicator: str = ""
    expression: str = ""
    samples: str = ""  # base of an own expression, such as requests; blank: the scrapes count
    own_unit: str = ""  # of an own expression
    is_own_higher_better: bool = False

    def __post_init__(self) -> None:
        if not self.expression and self.indicator not in INDICATORS:
            raise ValueError(f"indicator is one of {', '.join(INDICATORS)}; or write an expression.")
        if self.samples and not self.expression:
            raise ValueError("samples is only allowed with your own expression. An indicator counts its own samples.")
        for name, text in (("expression", self.expression), ("samples", self.samples)):
            try:
                read_expression(text) if text else None
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error

    @property
    def value_expression(self) -> Expression:
        return read_expression(self.expression or INDICATORS[self.indicator].expression)

    @property
    def samples_expression(self) -> Expression | None:
        text = self.samples if self.expression else INDICATORS[self.indicator].samples
        return read_expression(text) if text else None

    @property
    def expressions(self) -> list[Expression]:
        return [each for each in (self.value_expression, self.samples_expression) if each]

    @property
    def title(self) -> str:
        return "The expression" if self.expression else INDICATORS[self.indicator].title

    @property
    def unit(self) -> str:
        return self.own_unit if self.expression else INDICATORS[self.indicator].unit

    @property
    def is_higher_better(self) -> bool:
        return self.is_own_higher_better if self.expression else INDICATORS[self.indicator].is_higher_better
