"""Where the files that are not Python lie: inside the installed package, or beside it in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """The folder `sql` or `userscripts`: in the package when installed, at the repository's top level in a checkout.

    Raises FileNotFoundError when it is in neither place.
    """
    for folder in (_PACKAGE / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder {name!r} is neither inside nor beside {_PACKAGE}")
