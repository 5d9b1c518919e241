"""``kernsel stability``: which rows move the kernel matrix most, and what that bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kernsel.cli import console
from kernsel.cli.arguments import RESULTS, Asked, Data, Json, Output, Quiet, Target, Threads, option
from kernsel.cli.reading import announce_compiling, begin, read_dataset
from kernsel.cli.writing import File, deliver
from kernsel.errors import OptionError

if TYPE_CHECKING:
    from kernsel.selection.chosen import Choice


def stability(
    data: Data,
    asked: Asked,
    kernel: Annotated[str | None, option("NAME", "The kernel with its parameters, such as 'gaussian(tau=2)'.")] = None,
    lam: Annotated[float | None, option("VALUE", "The regularisation.", name="--lambda")] = None,
    result: Annotated[
        Path | None, option("FILE", "Take what is not given from a result of kernsel select --output.", name="--from")
    ] = None,
    target: Target = None,
    learner: Annotated[
        str | None, option("krr|svm", "The learner [default: svm for classification, krr for regression].")
    ] = None,
    norm: Annotated[
        str, option("spectral|trace|frobenius", "The norm of K - K^i; 2 is the spectral one.")
    ] = "spectral",
    folds: Annotated[int, option("N", "Folds of the cross-validation.", least=2)] = 10,
    repeats: Annotated[int, option("R", "How often the folds are dealt.", least=1)] = 10,
    delta: Annotated[float, option("P", "Probability with which the bound on the risk may fail.")] = 0.05,
    top: Annotated[int, option("N", "Rows to list.", least=0)] = 10,
    plot: Annotated[
        Path | None, option("FILE", "Draw how far each row moves the kernel to this PNG, SVG or PDF.", RESULTS)
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
        begin(data, asked, output, {"--plot": plot}, threads)
        from kernsel.evaluation.assessment import assess_dataset
        from kernsel.report.pictures import plot_perturbations

        given = {"kernel": kernel, "lam": lam, "learner": learner, "target": target, "task": asked.given["task"]}
        choice = _choice(result, {name: value for name, value in given.items() if value is not None})
        plan, chatty = asked.plan(task=choice.task), not (json or quiet)
        _, dataset = read_dataset(data, asked.reading, plan, choice.target, choice.aside, chatty, alike=True)
        announce_compiling(quiet)
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
        picture = File("picture", plot, lambda path: plot_perturbations(found.stability, path, numbers))
        deliver(document if json else found.summary(), document, output, chatty, picture)


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
