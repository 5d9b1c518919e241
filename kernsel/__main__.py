"""Run the command line by ``python -m kernsel``."""

from kernsel.cli import main

if __name__ == "__main__":
    main()
