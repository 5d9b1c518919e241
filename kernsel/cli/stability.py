"""``kernsel stability``: which rows move the kernel matrix most, and what that bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernsel.cli import console
from kernsel.cli.arguments import RESULTS, Asked, Data, Json, Output, Quiet, Target, Threads
from kernsel.cli.reading import check_outputs, read_dataset, set_threads
from kernsel.cli.writing import deliver, say_written
from kernsel.errors import OptionError

if TYPE_CHECKING:
    from kernsel.selection.chosen import Choice


def stability(
    data: Data,
    asked: Asked,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="The kernel with its parameters, such as 'gaussian(tau=2)'.")
    ] = None,
    lam: Annotated[float | None, typer.Option("--lambda", metavar="VALUE", help="The regularisation.")] = None,
    result: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Take what is not given from a result of kernsel select --output."),
    ] = None,
    target: Target = None,
    learner: Annotated[
        str | None,
        typer.Option(metavar="krr|svm", help="The learner [default: svm for classification, krr for regression]."),
    ] = None,
    norm: Annotated[
        str, typer.Option(metavar="spectral|trace|frobenius", help="The norm of K - K^i; 2 is the spectral one.")
    ] = "spectral",
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="Folds of the cross-validation.")] = 10,
    repeats: Annotated[int, typer.Option(metavar="R", min=1, help="How often the folds are dealt.")] = 10,
    delta: Annotated[
        float, typer.Option(metavar="P", help="Probability with which the bound on the risk may fail.")
    ] = 0.05,
    top: Annotated[int, typer.Option(metavar="N", min=0, help="Rows to list.")] = 10,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw how far each row moves the kernel to this PNG, SVG or PDF.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
) -> None:
    """Find the rows that move the kernel matrix most, and bounds from kernel stability, beside cross-validation.

    Rows are numbered from 1, the header not counted. The bounds are very loose; the output says by how much.
    """
    with console.guarded():
        check_outputs(data, {"--output": output, "--plot": plot})
        set_threads(threads)
        from kernsel.report.pictures import plot_perturbations
        from kernsel.report.style import check_plot

        if plot is not None:
            check_plot(plot)
        from kernsel.evaluation.assessment import assess_dataset
        from kernsel.numerics.runtime import jit

        given = {"kernel": kernel, "lam": lam, "learner": learner, "target": target, "task": asked.given["task"]}
        choice = _choice(result, {name: value for name, value in given.items() if value is not None})
        plan, chatty = asked.plan(task=choice.task), not (json or quiet)
        _, dataset = read_dataset(data, asked.reading, plan, choice.target, choice.aside, chatty, alike=True)
        jit.announce = None if quiet else console.say
        with console.progress(quiet) as report:
            found = assess_dataset(
                dataset,
                kernel=choice.kernel,
                lam=choice.lam,
                learner=choice.learner,
                norm="spectral" if norm == "2" else norm,
                folds=folds,
                repeats=repeats,
                delta=delta,
                rank=plan.rank,
                top=top,
                seed=plan.seed,
                progress=report,
            )
        document = found.to_json()
        numbers = (found.places + 1).tolist()
        drawing = [] if plot is None else [lambda: plot_perturbations(found.stability, plot, numbers)]
        deliver(document if json else found.summary(), document, output, *drawing)
        if chatty:
            say_written(result=output, picture=plot)


def _choice(result: Path | None, given: dict[str, Any]) -> Choice:
    """Return what is given, completed from the result of a selection if there is one."""
    from kernsel.selection.chosen import Choice, read_choice

    if result is not None:
        return read_choice(result)._replace(**given)
    if not given.keys() >= {"kernel", "lam"}:
        raise OptionError(
            "give --kernel with its parameters, such as 'gaussian(tau=2)', and --lambda, such as 0.01; or --from with "
            "a result that kernsel select --output wrote"
        )
    return Choice(**given)
