"""The other end of the bench: a client in a process of its own, cheap enough not to be what is measured.

Reads one Load as JSON from standard input, writes its Tally to standard output. Every answer's status and length are
checked, and of the variable ones a sample is read whole.
"""

import gzip
import select
import socket
import sys
import time
import zlib

import msgspec

SAMPLE = 64
"""One answer in so many is decompressed and searched."""


class Load(msgspec.Struct):
    """What to ask, over how many connections, for how long.

    Connection number i sends `requests[i % len(requests)]` one after another, over and over. An answer ends with
    `end` and begins with `start`; its body, decompressed, holds the text that belongs to its request.
    """

    host: str
    port: int
    connections: int
    seconds: float
    requests: list[list[bytes]]
    contents: list[list[bytes]]
    start: bytes
    end: bytes
    same_length: bool = True


class Tally(msgspec.Struct):
    """What came of it."""

    answers: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


class _Talker:
    def __init__(self, load: Load, number: int) -> None:
        self.load = load
        self.socket = socket.create_connection((load.host, load.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests = load.requests[number % len(load.requests)]
        self.contents = load.contents[number % len(load.contents)]
        self.turn = 0
        self.received = b""
        self.length = 0

    def ask(self) -> None:
        self.socket.sendall(self.requests[self.turn % len(self.requests)])

    def read(self) -> bool:
        """Whether the answer is complete with what has come now."""
        data = self.socket.recv(262_144)
        if not data:
            raise SystemExit(f"the server closed a connection after {self.received[:200]!r}")
        self.received += data
        if not self.received.endswith(self.load.end):
            return False
        self.check(self.received)
        self.received = b""
        self.turn += 1
        return True

    def check(self, answer: bytes) -> None:
        if not answer.startswith(self.load.start):
            raise SystemExit(f"expected {self.load.start!r}, got {answer[:400]!r}")
        if self.load.same_length and len(answer) != (self.length or len(answer)):
            raise SystemExit(f"an answer of {len(answer)} bytes after one of {self.length}")
        self.length = len(answer)
        if self.turn % SAMPLE == 0:
            content = self.contents[self.turn % len(self.contents)]
            if content not in body_of(answer):
                raise SystemExit(f"{content!r} is not in {body_of(answer)[:400]!r}")


def body_of(answer: bytes) -> bytes:
    """The body of a chunked, gzipped answer; empty when it has none."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return rest
    body = b""
    while (size := int(rest.partition(b"\r\n")[0], 16)) > 0:
        rest = rest.partition(b"\r\n")[2]
        body, rest = body + rest[:size], rest[size + 2 :]
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error) as error:
        raise SystemExit(f"a body that is no gzip: {error}") from None


def run(load: Load) -> Tally:
    """Ask until the time is up, in a closed loop on each connection."""
    poller = select.epoll()
    talkers = {}
    for number in range(load.connections):
        talker = _Talker(load, number)
        talkers[talker.socket.fileno()] = talker
        poller.register(talker.socket, select.EPOLLIN)
    started = time.perf_counter()
    deadline = started + load.seconds
    answers = 0
    for talker in talkers.values():
        talker.ask()
    while (now := time.perf_counter()) < deadline:
        for descriptor, _ in poller.poll(1):
            talker = talkers[descriptor]
            if talker.read():
                answers += 1
                talker.ask()
    return Tally(answers, now - started)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(run(msgspec.json.decode(sys.stdin.buffer.read(), type=Load))))
