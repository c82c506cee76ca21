"""How a command that runs until it is told to is told to end."""

import logging
import signal

import trio

log = logging.getLogger(__name__)


class Shutdown:
    """The one way out. The first signal begins an orderly end, a second one cuts it short (OPS-007)."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.start = trio.CancelScope()
        """What must not go on once the end was asked for: getting started."""
        self.everything = trio.CancelScope()

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen for SIGTERM and SIGINT until cancelled."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            async for number in signals:
                name = signal.Signals(number).name
                if self.asked.is_set():
                    log.warning("%s again: the end is cut short", name)
                    self.everything.cancel()
                else:
                    log.info("%s: shutting down", name)
                    self.asked.set()
                    self.start.cancel()
