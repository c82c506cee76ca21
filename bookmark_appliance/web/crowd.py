"""How many connections there may be at once."""

import logging
import resource

import trio

_MOST_CONNECTIONS = 2_000
_FILES = 4_096
"""Enough for those, the database, the lanes and a browser; a hard limit may be a thousand million."""
_SAY_SECONDS = 60

_logger = logging.getLogger(__name__)


class Crowd:
    """Turns away who comes when the room is full: descriptors that idle clients hold are not there to accept with."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._silent_until = 0.0

    @classmethod
    def of_this_process(cls) -> "Crowd":
        """Raises the process's own limit of open files where it is low; a quarter of it is left to everything else."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < (wanted := min(hard, _FILES)):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        return cls(min(_MOST_CONNECTIONS, soft * 3 // 4))

    def has_room_for(self, connections: int) -> bool:
        """Whether so many may be; says in the log now and then that they may not."""
        if connections <= self.most:
            return True
        if trio.current_time() >= self._silent_until:
            self._silent_until = trio.current_time() + _SAY_SECONDS
            _logger.warning("%d connections are open, the most there may be: new ones are closed", self.most)
        return False
