"""A command of kernsel in this process."""

from typer.testing import CliRunner

from kernsel.cli import app


def run(*args, code=0):
    """Run it, and check its exit code; where that is 2, an error of kernsel's is one line."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    if code == 2 and result.stderr.startswith("kernsel:"):
        assert result.stderr.count("\n") == 1
    return result
