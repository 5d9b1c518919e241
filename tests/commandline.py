"""A command of kernsel in this process."""

import shlex

from typer.testing import CliRunner

from kernsel.cli import app


def run(*args, code=0):
    """Run it, and check its exit code; where that is 2, an error of kernsel's is one line."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    if code == 2 and result.stderr.startswith("kernsel:"):
        assert result.stderr.count("\n") == 1
    return result


def commands(code):
    """Return the commands of a block of shell, each as a list of words."""
    joined = code.replace("\\\n", " ")
    return [words for line in joined.splitlines() for part in line.split(" && ") if (words := shlex.split(part, True))]
