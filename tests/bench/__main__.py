"""`python3 build.py bench`: every figure to reach; exits 1 when one is missed."""

import sys

from tests.bench import api, browser, covers, host, lanes, pages, serve


def main() -> int:
    """Measure and print part by part; 1 when a promise is broken."""
    missed = 0
    for part in (serve, api, pages, covers, lanes, host, browser):
        for figure in part.run():
            print(figure, flush=True)
            missed += figure.missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
