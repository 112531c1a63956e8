"""Runs jobs that start commands, a few at a time."""

import concurrent.futures
from collections.abc import Callable, Sequence

from lib.lab.run import offspring


def run(
    jobs: Sequence[Callable[[], None]],
    at_once: int,
    on_done: Callable[[int], None] | None = None,
) -> None:
    """Run all jobs; after the first error none begins, and those under way end first.

    on_done: called with the number of jobs done so far.
    """
    known = offspring.seen()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(job) for job in jobs]
        try:
            for done, future in enumerate(concurrent.futures.as_completed(running), 1):
                future.result()
                if on_done is not None:
                    on_done(done)
        except KeyboardInterrupt:
            # Only the main thread is notified: no other work can be in progress.
            offspring.end(but=known)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
