# SPDX-License-Identifier: LGPL-2.1-or-later
"""Jobs: processes that run a program together: kdsm_job_join(3), kdsmrun(1).

    from kdsm.job import Job

    with Job() as job:
        grid = job.array((1000, 1000))
        for i in job.share(1000):
            grid[i] = i
        print(job.allreduce(job.rank))

All members make collective calls in the same order and with arguments of the same types and sizes.
"""

import array
import atexit
import ctypes
import weakref
from ctypes import byref, c_uint64

from . import Cluster, Region, _as_array, _buffer, _c, _Closable, _Object, _view

# Operations
SUM = 1
MIN = 2
MAX = 3

# Types of elements, by the format of a buffer
_TYPES = {"l": 1, "q": 1, "L": 2, "Q": 2, "d": 3}
_LOCAL = 1 << 0


@_c.FAILED
def _raise_later(_context, _error, _message):
    """The end of the job is an exception of the next call."""


def _elements(value):
    """A buffer with the elements of a value, their type, and their number."""
    if getattr(value, "ndim", 1) == 0:  # a scalar of NumPy
        value = value.item()
    if isinstance(value, (int, float)):
        value = array.array("d" if isinstance(value, float) else "q", [value])
    view = memoryview(value)
    if view.itemsize != 8 or view.format not in _TYPES:
        raise TypeError(f"elements are 8-byte integers or floats, not of format {view.format!r}")
    return value, _TYPES[view.format], view.nbytes // 8


_joined = weakref.WeakSet()


@atexit.register
def _leave_all():
    """Leave jobs whose views exist until the program ends; other members wait for that."""
    for job in list(_joined):
        _Object.closing = False
        _c.job_leave(job.pointer)


class Job(_Closable):
    """This process's membership in a job.

    Without arguments, name, size and rank are those of the launcher: kdsmrun, Slurm or MPI. local
    uses this machine alone. memory and sync are sizes in bytes, the timeout is in seconds. If
    the job ends with an error, the next call of each member raises Error with the reason. A with
    block that an exception leaves ends the job.

    Leaving waits for all members. A job is left when it is closed and the last view of its memory
    is gone, at the latest at the end of the program.
    """

    def __init__(self, name=None, *, size=0, rank=0, cluster=None, local=False, memory=0, sync=0,
                 block_size=0, timeout=None):
        attr = _c.sized(_c.JobAttr, name=None if name is None else name.encode(), size=size,
                        rank=rank, kdsm=cluster._pointer if cluster else None,
                        flags=_LOCAL if local else 0, memory=memory, sync=sync,
                        block_size=block_size, failed=_raise_later,
                        timeout=0 if timeout is None else _c.timeout_of(timeout))
        pointer = _c.P()
        _c.job_join(byref(attr), byref(pointer))
        self._object = _Object(pointer, _c.job_leave, cluster._object if cluster else None)
        _joined.add(self._object)

        def borrowed(function):
            return _Object(_c.P(function(pointer)), parent=self._object)

        self._shared = (Cluster(opened=borrowed(_c.job_cluster)),
                        Region(borrowed(_c.job_region)), Region(borrowed(_c.job_sync)))

    def close(self):
        """Leave the job: collective. A second call does nothing."""
        self._shared = None
        super().close()

    def abort(self):
        """End the job with an error, on all nodes."""
        _c.job_abort(self._pointer)

    def __exit__(self, kind, *_):
        if kind and self._object:
            self.abort()
        self.close()

    @property
    def rank(self):
        """Rank of this member."""
        return _c.job_rank(self._pointer)

    @property
    def size(self):
        """Number of members."""
        return _c.job_size(self._pointer)

    @property
    def nodes(self):
        """Number of nodes that have members."""
        return _c.job_nodes(self._pointer)

    def node(self, rank):
        """Node of a member."""
        return _c.job_node(self._pointer, range(self.size)[rank])

    @property
    def name(self):
        """Name of the job."""
        return _c.job_name(self._pointer).decode()

    def _share_of(self, index):
        return self._pointer and self._shared[index]

    @property
    def cluster(self):
        """The cluster of the job."""
        return self._share_of(0)

    @property
    def region(self):
        """The coherent region of the job, for locks and hints."""
        return self._share_of(1)

    @property
    def sync(self):
        """The partitioned region of words to synchronise by."""
        return self._share_of(2)

    # ---- collective calls ----

    def barrier(self):
        """Wait for all members."""
        _c.job_barrier(self._pointer)

    def broadcast(self, root, buffer):
        """Copy a writable buffer, such as a NumPy array, from the member root to all others."""
        address, length, keep = _buffer(buffer, writable=True)
        _c.job_broadcast(self._pointer, root, address, length)
        del keep
        return buffer

    def allreduce(self, value, op=SUM):
        """Combine a value of each member: SUM, MIN or MAX; all members get the result.

        The value is an integer, a float, or a writable buffer of 8-byte integers or floats, such as
        a NumPy array, whose elements become the results.
        """
        return self._combine(_c.job_allreduce, value, op)

    def reduce(self, root, value, op=SUM):
        """Combine a value of each member; root gets the result, the others their own value."""
        return self._combine(_c.job_reduce, value, op, root)

    def scan(self, value, op=SUM):
        """Combine the values of the members up to and including this one."""
        return self._combine(_c.job_scan, value, op)

    def _combine(self, function, value, op, *root):
        elements, kind, count = _elements(value)
        address, _, keep = _buffer(elements, writable=True)
        function(self._pointer, *root, kind, op, address, count)
        del keep
        return value if elements is value else elements[0]

    def allgather(self, data):
        """The bytes of each member, a list by rank. All bring equally many."""
        address, length, keep = _buffer(data)
        gathered = (ctypes.c_ubyte * (length * self.size))()
        _c.job_allgather(self._pointer, address, length, gathered)
        del keep
        whole = bytes(gathered)
        return [whole[i:i + length] for i in range(0, len(whole), length)]

    # ---- memory, which all members allocate in the same order ----

    def alloc(self, length):
        """Allocate memory that all members share, zero at first: a memoryview of bytes."""
        address = _c.job_alloc(self._pointer, length)
        if not address:
            _c.raise_error(-ctypes.get_errno())
        return _view(address, length, self._object)

    def array(self, shape, dtype="f8"):
        """The same as a NumPy array."""
        import numpy
        dtype = numpy.dtype(dtype)
        return _as_array(self.alloc(int(numpy.prod(shape)) * dtype.itemsize), dtype, shape)

    def spread(self, count, dtype="f8"):
        """Allocate an array of which every member has a share, in blocks of its own.

        Returns a NumPy array for each member, by rank.
        """
        import numpy
        dtype, state = numpy.dtype(dtype), _c.SpreadState()
        _c.job_spread(self._pointer, count, dtype.itemsize, byref(state))
        return [_as_array(_view(state.base + rank * state.stride,
                                len(_share(count, rank, self.size)) * dtype.itemsize, self._object),
                          dtype, -1) for rank in range(self.size)]

    def alloc_sync(self, length):
        """Allocate bytes of every part of sync; returns their offset."""
        offset = c_uint64()
        _c.job_alloc_sync(self._pointer, length, byref(offset))
        return offset.value

    # ---- loops ----

    def share(self, count):
        """This member's share of the indices below count, a range."""
        return _share(count, self.rank, self.size)

    def loop(self, count, chunk=1):
        """An iterator over indices below count: collective.

        Members take chunks of indices when they are idle, so that one member gets each index.
        """
        state = _c.LoopState()
        _c.job_loop(self._pointer, count, chunk, byref(state))
        return self._indices(state)

    def _indices(self, state):
        begin, end = c_uint64(), c_uint64()
        while self._pointer and _c.loop_next(byref(state), byref(begin), byref(end)):
            yield from range(begin.value, end.value)


def _share(count, rank, size):
    """kdsm_share(3), which is an inline function"""
    first, last = (count // size * r + count % size * r // size for r in (rank, rank + 1))
    return range(first, last)
