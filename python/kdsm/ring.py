# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rings: many operations in flight, without a system call for each: kdsm_ring_open(3).

    from kdsm.ring import Ring

    ring = Ring(region)
    words = [ring.get(node, 64, 8) for node in range(cluster.nodes)]
    print([word.result() for word in words])
"""

import errno
from ctypes import byref

from . import _c, _Closable, _Object, _view


class Operation:
    """An operation that was started."""

    def __init__(self, ring, what, done):
        self._ring = ring
        self._what = what  # name, length, node, offset
        self._done = done
        self._status = None
        self._value = None

    @property
    def done(self):
        """Whether it is complete."""
        return self._status is not None

    def result(self):
        """The bytes of a get, or the value before of cas and faa; waits until they are there."""
        while not self.done:
            self._ring.run()
        if self._status:
            name, length, node, offset = self._what
            raise _c.Error(-self._status,
                           f"{name} of {length} bytes, node {node}, offset {offset}: "
                           f"{_c.strerror(self._status).decode()}")
        return self._value

    def _complete(self, status, value):
        self._status, self._value = status, value
        if self._done:
            self._done(self)


class Ring(_Closable):
    """A ring of a partitioned region, for one thread at a time.

    At most entries operations are in flight, each of at most item bytes. Starting one more waits
    until one is complete. done, where it is given, is called with the Operation when that is
    complete, by the calls that wait.
    """

    def __init__(self, region, entries=64, item=64):
        pointer = _c.P()
        _c.ring_open(region._pointer, entries, entries * item, byref(pointer))
        self._object = _Object(pointer, _c.ring_close, region._object)
        self._item = item
        self._unused = list(range(entries))
        self._started = [None] * entries
        self._buffer = _view(_c.ring_buffer(pointer), entries * item, self._object)

    def close(self):
        """Close the ring, and wait for what is in flight, whose results are lost."""
        self._buffer = None
        super().close()

    def fileno(self):
        """A file that is readable while operations are complete, for select and asyncio."""
        return _c.ring_fd(self._pointer)

    # ---- starting operations ----

    def get(self, node, offset, length, done=None):
        """Start a get of bytes."""
        address = self._take(length)
        return self._start(_c.ring_prep_get, ("get", length, node, offset), (address, length), done)

    def put(self, node, offset, data, done=None):
        """Start a put of bytes, which are copied."""
        data = memoryview(data).cast("B")
        address = self._take(len(data))
        self._memory()[:len(data)] = data
        return self._start(_c.ring_prep_put, ("put", len(data), node, offset),
                           (address, len(data)), done)

    def cas(self, node, offset, expected, desired, done=None):
        """Start a compare-and-swap."""
        self._take()
        return self._start(_c.ring_prep_cas, ("cas", 8, node, offset), (expected, desired), done)

    def faa(self, node, offset, add, done=None):
        """Start a fetch-and-add."""
        self._take()
        return self._start(_c.ring_prep_faa, ("faa", 8, node, offset), (add % 2**64,), done)

    def _take(self, length=0):
        """Make the last of _unused an item for an operation; returns the address of its memory."""
        if length > self._item:
            raise ValueError(f"{length} bytes are more than an item of the ring, {self._item}")
        while self._pointer and not self._unused:
            self.run()
        return (_c.ring_buffer(self._pointer) or 0) + self._unused[-1] * self._item

    def _memory(self):
        return self._buffer[self._unused[-1] * self._item:]

    def _start(self, prepare, what, values, done):
        item = self._unused[-1]
        prepare(self._pointer, *what[2:], *values, item)
        self._started[item] = Operation(self, what, done)
        return self._started[self._unused.pop()]

    # ---- completing them ----

    @property
    def in_flight(self):
        """Number of operations that were started and are not complete."""
        return len(self._started) - len(self._unused)

    def submit(self):
        """Submit what was started, without waiting; the calls that wait do so, too."""
        _c.ring_submit(self._pointer)

    def run(self, count=1, timeout=None):
        """Submit what was started, and wait until count operations are complete.

        Returns how many were completed: fewer if the time was over or no more were in flight.
        """
        most, completion = self.in_flight, _c.Completion()
        _c.unless(errno.ETIMEDOUT, _c.ring_wait, self._pointer, min(count, most),
                  _c.timeout_of(timeout))
        for i in range(most):
            # One by one: a function may raise an exception, and the others are still there.
            if not _c.ring_reap(self._pointer, byref(completion), 1):
                return i
            self._complete(completion)
        return most

    def _complete(self, completion):
        item = completion.data
        operation, self._started[item] = self._started[item], None
        self._unused.append(item)
        name, length, _, _ = operation._what
        if name == "get":
            value = bytes(self._memory()[:length])
        else:
            value = None if name == "put" else completion.result
        operation._complete(completion.status, value)

    def finish(self):
        """Wait until nothing is in flight."""
        while self.in_flight:
            self.run(self.in_flight)
