"""The command: `python -m bookmark_appliance`, and what the one file starts once it is unpacked."""

import sys


def main() -> None:
    """Run the command line; does not return."""
    if sys.version_info < (3, 11):  # noqa: UP036 - a checkout is started on whatever Python is there
        sys.stderr.write("bookmark-appliance needs Python 3.11 or newer\n")
        sys.exit(2)

    from bookmark_appliance import cli  # every package is imported behind the check

    cli.main()


if __name__ == "__main__":
    main()
