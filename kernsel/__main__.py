"""Run the command line: by ``kernsel``, or by ``python -m kernsel``."""

from kernsel.system import interrupts


def main() -> None:
    """Run it; a stop ends it in one line from here on, while all the rest is imported too."""
    interrupts.end_at_once()
    from kernsel.cli import main as command

    command()


if __name__ == "__main__":
    main()
