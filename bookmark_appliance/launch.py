"""Become another user, ask to be ended with the parent, then become the given program.

A script of its own, started with `python -I -S`: it runs before any change of user, when the interpreter can still be
read, and without the risks of running Python between fork and exec. The order matters: changing the user clears the
parent-death signal. Arguments: uid, gid, the parent's pid, the signal (0 for none), the program and its arguments.
"""

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Never returns: the process becomes the program, or exits with status 1."""
    uid, gid, parent, end_signal = map(int, sys.argv[1:5])
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if end_signal:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, end_signal, 0, 0, 0)
        if os.getppid() != parent:
            # The parent was gone before it could be watched.
            sys.exit(1)
    os.execv(sys.argv[5], sys.argv[5:])  # noqa: S606 - our own arguments


if __name__ == "__main__":
    main()
