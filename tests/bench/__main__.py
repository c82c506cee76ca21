"""`python3 build.py bench`: every figure to reach; exits 1 when one is missed."""

import sys

from tests.bench import api, serve

if __name__ == "__main__":
    missed = False
    for part in (serve, api):
        try:
            part.main()
        except SystemExit as ended:
            missed = missed or bool(ended.code)
    sys.exit(missed)
