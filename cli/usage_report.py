"""The weekly usage report as a table: who reserved GPUs, how much of it was idle, and the advice."""

import typer

from cli.rest_types import UsageReport, WorkloadReport
from cli.server import Server
from cli.tables import Format, plain, show_document, table

HEADINGS = ("NAMESPACE", "WORKLOAD", "CLUSTER", "RESERVED H", "IDLE H", "BUSY %", "KWH", "KWH OF H", "COST", "ADVICE")


def show_report(server: Server, *, limit: int, form: Format) -> None:
    """Prints the GPU-hours of the last 7 days by workload, most idle first."""
    report: UsageReport = server.get("usage/report", limit=limit)
    if form is not Format.TABLE:
        show_document(report, form)
        return
    typer.echo(table(HEADINGS, [_cells(row) for row in report["workloads"]]))
    total, coverage = report["total"], report["coverage"]
    typer.echo(
        f"{report['first']} to {report['last']}: {_number(total['gpu_hours'])} GPU-hours, "
        f"idle: {_number(total['by_use']['idle'])}, the 7 days before: {_number(report['previous']['gpu_hours'])}."
    )
    if coverage["missing"]:
        typer.echo(f"Not recorded: {coverage['missing']} hours. The sums omit them.", err=True)


def _cells(row: WorkloadReport) -> list[str]:
    busy = None if row["busy_ratio"] is None else 100 * row["busy_ratio"]
    names = [plain(name) or "none" for name in (row["namespace"], row["workload"], row["cluster"])]
    amounts = (
        row["gpu_hours_reserved"],
        row["amount"]["by_use"]["idle"],
        busy,
        row["energy_kwh"],
        row["energy_gpu_hours"],
        row["amount"]["cost"],
    )
    return [*names, *(_number(amount) for amount in amounts), plain(row["advice"])]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}"
