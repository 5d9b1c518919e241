"""What a start of kernsel costs, beside a start of Python, in one run.

    python benchmarks/start.py [--repeat 15]

Fresh processes, in turn; the least of all rounds, for a start has no work of its own that could be faster than that.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

STARTS = {
    "python": ["-c", "pass"],
    "import kernsel": ["-c", "import kernsel"],
    "kernsel --help": ["-m", "kernsel", "--help"],
    "kernsel select --help": ["-m", "kernsel", "select", "--help"],
}


def seconds(arguments: list[str]) -> float:
    """Return the seconds of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print each start, and what it costs beyond that of Python."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    rounds = [
        {name: seconds(arguments) for name, arguments in STARTS.items()} for _ in range(parser.parse_args().repeat)
    ]
    least = {name: min(each[name] for each in rounds) for name in STARTS}
    for name, value in least.items():
        print(f"{name:24} {value:6.3f} s, {value - least['python']:6.3f} s beyond Python")


if __name__ == "__main__":
    main()
