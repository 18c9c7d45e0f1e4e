# SPDX-License-Identifier: LGPL-2.1-or-later
"""Distributed shared memory for Linux clusters with RDMA: libkdsm for Python.

    import kdsm

    with kdsm.Cluster(kdsm.OPEN_ALLOW_LOCAL) as cluster:
        places = cluster.region("places", cluster.nodes * 4096)
        places.faa(0, 128, cluster.node)
        places.barrier(0).wait()
        print(int.from_bytes(places.get(0, 128, 8), "little"))

Each method is one call of the C function of the same name, and the manual page of that function,
such as kdsm_region_open(3), describes it. A call that fails raises kdsm.Error, an OSError with the
text of kdsm_error(3). Timeouts are in seconds, and None never ends.

Memory of a region is a memoryview, or a NumPy array if NumPy is installed. A region that is closed
stays mapped until its last view is gone; a cluster stays open until its last region is gone.

kdsm.job has jobs, kdsm.ring rings, and kdsm.reach searches.
"""

import ctypes
import errno
import time
from ctypes import byref, c_uint32, c_uint64

from . import _c
from ._c import Error, OwnerDied, Signature

__all__ = ["Barrier", "Cluster", "Error", "Lock", "OwnerDied", "Region", "Signature", "TreeBarrier"]

__version__ = _c.version().decode()

# Flags of Cluster(): kdsm_open(3)
OPEN_ALLOW_LOCAL = 1 << 0
OPEN_LOCAL = 1 << 1
OPEN_ALONE = 1 << 2

# Policies and flags of regions: kdsm_region_open(3)
PARTITIONED = 1
RELEASE = 2
STRICT = 3
EXCL = 1 << 1
KEEP = 1 << 2
CONTIGUOUS = 1 << 3

# Kinds of locks, and any free number: kdsm_lock_create(3)
DMCS = 1
RMA_MCS = 2
RMA_RW = 3
LOCK_ANY = 2**32 - 1

# Order of atomic operations: kdsm_atomic_add(3)
ATOMIC_ACQUIRE = 1 << 0
ATOMIC_RELEASE = 1 << 1

# Bytes that a barrier takes of every part
BARRIER_SIZE = 128
TREE_BARRIER_SIZE = 16384


def strerror(number):
    """What an error number, of either sign, means in libkdsm."""
    return _c.strerror(number).decode()


class _Object:
    """A pointer of the library, which is closed when nothing refers to it any more.

    Without close the parent closes it. The parent is closed later: references alone do not say so,
    because the collector of garbage deletes parents and children in any order.
    """

    closing = True  # False while the program ends and jobs have been left

    def __init__(self, pointer, close=None, parent=None):
        self.pointer = pointer
        self.close = close
        self.parent = parent
        self.users = 1
        if parent:
            parent.users += 1

    def __del__(self):
        self.release()

    def release(self):
        self.users -= 1
        if self.users == 0 and self.closing:
            if self.close:
                self.close(self.pointer)
            if self.parent:
                self.parent.release()


class _Closable:
    """What has an _Object, and is a context manager that closes it."""

    _object = None

    @property
    def _pointer(self):
        if self._object is None:
            raise ValueError(f"this {type(self).__name__.lower()} is closed")
        return self._object.pointer

    def close(self):
        """Close it; a second call does nothing."""
        self._object = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Cluster(_Closable):
    """An open cluster: kdsm_open(3)."""

    def __init__(self, flags=0, *, opened=None):
        if opened is None:
            pointer = _c.P()
            _c.open_cluster(flags, byref(pointer))
            opened = _Object(pointer, _c.close_cluster)
        self._object = opened

    @property
    def node(self):
        """Number of this node."""
        return _c.node(self._pointer)

    @property
    def nodes(self):
        """Number of nodes."""
        return _c.nodes(self._pointer)

    @property
    def domain(self):
        """Domain of atomic operations in force: "sw", "hca" or "glob"."""
        return (None, "sw", "hca", "glob")[_c.domain(self._pointer)]

    @property
    def is_local(self):
        """Whether this is the local backend."""
        return bool(_c.is_local(self._pointer))

    @property
    def name(self):
        """Name of the cluster."""
        return _c.cluster_name(self._pointer).decode()

    def location(self, node):
        """Location of a node, a path."""
        text = (ctypes.c_char * _c.LOCATION_SIZE)()
        _c.location(self._pointer, node, text)
        return text.value.decode()

    def settle(self):
        """Wait until all nodes see the puts of this process."""
        _c.settle(self._pointer)

    def counts(self):
        """Counts of operations on other nodes, a dictionary: kdsm_counts(3)."""
        counts = _c.sized(_c.Counts)
        _c.counts(self._pointer, byref(counts))
        return {name: getattr(counts, name) for name, _ in counts._fields_[1:]}

    def destroy(self, name):
        """Remove the name of a region."""
        _c.region_destroy(self._pointer, name.encode())

    def region(self, name, size=None, *, policy=PARTITIONED, block_size=0, mode=0, flags=0):
        """Open a region of this size over all nodes, and create it if it does not exist.

        Without a size the region must exist.
        """
        attr = _attr(size, policy, block_size, mode, flags)
        pointer = _c.P()
        _c.region_open(self._pointer, name.encode(), attr, byref(pointer))
        return Region(_Object(pointer, _c.region_close, self._object))

    def coherent(self, name, size=None, sync_size=4096, *, policy=RELEASE, block_size=0, mode=0,
                 flags=0):
        """Open a coherent region, and its companion for words to synchronise by.

        The companion has sync_size bytes on each node. Returns both.
        """
        attr = _attr(size, policy, block_size, mode, flags)
        memory, sync = _c.P(), _c.P()
        _c.region_open_coherent(self._pointer, name.encode(), attr, sync_size, byref(memory),
                                byref(sync))
        return tuple(Region(_Object(pointer, _c.region_close, self._object))
                     for pointer in (memory, sync))


def _attr(size, policy, block_size, mode, flags):
    if size is None:
        return None
    return byref(_c.sized(_c.RegionAttr, size=size, policy=policy, block_size=block_size, mode=mode,
                          flags=flags))


def _buffer(data, writable=False):
    """Address and length of a contiguous buffer, and the object that keeps it alive."""
    view = memoryview(data)
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous")
    if not view.nbytes:
        return None, 0, data
    if not view.readonly:
        array = (ctypes.c_ubyte * view.nbytes).from_buffer(view.cast("B"))
        return ctypes.addressof(array), view.nbytes, array
    if writable:
        raise ValueError("the buffer is for reading only")
    # c_char_p takes the address of bytes without a copy
    copy = view.obj if isinstance(view.obj, bytes) and len(view.obj) == view.nbytes else bytes(view)
    return ctypes.cast(ctypes.c_char_p(copy), ctypes.c_void_p), view.nbytes, copy


def _view(address, length, owner):
    """Memory as a memoryview of bytes, which keeps its owner open as long as there are views."""
    array = (ctypes.c_ubyte * length).from_address(address)
    array.owner = owner
    return memoryview(array).cast("B")


def _as_array(memory, dtype, shape):
    """A NumPy array in the first bytes of memory; shape -1: in all of it."""
    import numpy
    dtype = numpy.dtype(dtype)
    if shape == -1:
        return numpy.frombuffer(memory[:len(memory) - len(memory) % dtype.itemsize], dtype)
    return numpy.frombuffer(memory, dtype, int(numpy.prod(shape))).reshape(shape)


class Region(_Closable):
    """A region: kdsm_region_open(3)."""

    def __init__(self, handle):
        self._object = handle

    @property
    def size(self):
        """Size over all nodes, in bytes."""
        return _c.region_size(self._pointer)

    @property
    def part_size(self):
        """Size of each part of a partitioned region, in bytes; 0 if the region is coherent."""
        return _c.region_part_size(self._pointer)

    @property
    def memory(self):
        """This node's part, or all of a coherent region: a memoryview of bytes."""
        part = _c.region_part(self._pointer)
        length = self.part_size if part else self.size
        return _view(part or _c.region_address(self._pointer), length, self._object)

    def array(self, dtype="u8", shape=-1, offset=0):
        """The same memory as a NumPy array, from an offset in bytes on."""
        return _as_array(self.memory[offset:], dtype, shape)

    # ---- operations on places of a partitioned region ----

    def get(self, node, offset, length):
        """Bytes at a place."""
        data = bytearray(length)
        self.get_into(node, offset, data)
        return bytes(data)

    def get_into(self, node, offset, buffer):
        """Fill a buffer, such as a NumPy array, from a place."""
        address, length, keep = _buffer(buffer, writable=True)
        _c.get(self._pointer, node, offset, address, length)
        del keep

    def put(self, node, offset, data):
        """Put bytes, or another buffer, to a place."""
        address, length, keep = _buffer(data)
        _c.put(self._pointer, node, offset, address, length)
        del keep

    def cas(self, node, offset, expected, desired):
        """Compare-and-swap; returns the value before."""
        former = c_uint64()
        _c.cas(self._pointer, node, offset, expected, desired, byref(former))
        return former.value

    def faa(self, node, offset, add):
        """Fetch-and-add; returns the value before. add may be negative."""
        former = c_uint64()
        _c.faa(self._pointer, node, offset, add % 2**64, byref(former))
        return former.value

    def put_notify(self, node, offset, value):
        """Put a word, and wake the threads that wait for it."""
        _c.put_notify(self._pointer, node, offset, value)

    def wait(self, offset, value, timeout=None):
        """Wait while a word of this node's part has this value; False: it still has."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else end - time.monotonic()
            try:
                return _c.unless(errno.ETIMEDOUT, _c.wait, self._pointer, offset, value,
                                 _c.timeout_of(left))
            except Error as error:
                if error.errno != errno.EINTR:
                    raise

    # ---- coherence ----

    def release(self):
        """Complete this node's writes to a coherent region; returns a Signature."""
        signature = Signature()
        _c.release(self._pointer, byref(signature))
        return signature

    def acquire(self, *signatures):
        """See what the releases that made the signatures completed."""
        if not signatures:
            raise ValueError("there is no signature")
        merged = Signature.from_buffer_copy(signatures[0])
        for signature in signatures[1:]:
            _c.signature_merge(byref(merged), byref(signature))
        _c.acquire(self._pointer, byref(merged))

    def refresh(self, offset, length):
        """Acquire a range, without a signature."""
        _c.refresh(self._pointer, offset, length)

    def prefetch(self, offset, length):
        """Fetch copies of a range."""
        _c.prefetch(self._pointer, offset, length)

    def flush(self, offset, length):
        """Complete this node's writes to a range."""
        _c.flush(self._pointer, offset, length)

    def pin(self, offset, length):
        """Become the owner of a range."""
        _c.pin(self._pointer, offset, length)

    def atomic_load(self, offset, size=8, order=0):
        """Load a word of 4 or 8 bytes of a coherent region."""
        value = c_uint64()
        _c.atomic_load(self._pointer, offset, size, order, byref(value))
        return value.value

    def atomic_exchange(self, offset, value, size=8, order=0):
        """Store a word; returns the value before."""
        former = c_uint64()
        _c.atomic_exchange(self._pointer, offset, size, order, value, byref(former))
        return former.value

    def atomic_add(self, offset, add, size=8, order=0):
        """Add to a word; returns the value before. add may be negative."""
        former = c_uint64()
        _c.atomic_add(self._pointer, offset, size, order, add % 2**(8 * size), byref(former))
        return former.value

    def atomic_cas(self, offset, expected, desired, size=8, order=0):
        """Compare-and-swap of a word; returns the value before."""
        former = c_uint64()
        _c.atomic_cas(self._pointer, offset, size, order, expected, desired, byref(former))
        return former.value

    def lost(self):
        """Offsets of the lost blocks that programs of this node have met."""
        some, following, found = (c_uint64 * 64)(), c_uint64(0), []
        while True:
            count = _c.lost(self._pointer, some, len(some), byref(following))
            found += some[:count]
            if count < len(some):
                return found

    def discard(self, offset, length):
        """Make the lost blocks of a range usable again."""
        _c.discard(self._pointer, offset, length)

    # ---- synchronisation ----

    def lock(self, which, kind=RMA_MCS):
        """The lock of the region with this name or number; it is created if it does not exist."""
        return Lock(self, which, kind)

    def barrier(self, offset):
        """A barrier over all nodes, in BARRIER_SIZE bytes at offset of every part."""
        return Barrier(self, offset)


class Lock(_Closable):
    """A lock that all nodes share, as threading.Lock is of one process: kdsm_lock(3).

    The context manager locks and unlocks. Locking raises OwnerDied if the former holder died.
    """

    def __init__(self, region, which, kind=RMA_MCS):
        name, number = (which.encode(), 0) if isinstance(which, str) else (None, which)
        pointer = _c.P()
        _c.lock_create(region._pointer, name, number, byref(_c.sized(_c.LockAttr, kind=kind)),
                       byref(pointer))
        self._object = _Object(pointer, _c.lock_close, region._object)

    @property
    def number(self):
        """Number of the lock in its region."""
        return _c.lock_number(self._pointer)

    def acquire(self, blocking=True, timeout=-1):
        """Lock; False if another thread holds the lock, as with threading.Lock."""
        return self._take(_c.lock_try, _c.lock_interruptible, blocking, timeout)

    def release(self):
        """Unlock."""
        _c.unlock(self._pointer)

    def acquire_read(self, blocking=True, timeout=-1):
        """Lock for reading, together with other readers; for locks of kind RMA_RW."""
        return self._take(_c.read_lock_try, _c.read_lock_interruptible, blocking, timeout)

    def release_read(self):
        """Unlock after reading."""
        _c.read_unlock(self._pointer)

    def read(self):
        """A context manager that locks for reading."""
        return _Reading(self)

    def is_mine(self):
        """Whether the calling thread holds the lock, other than for reading."""
        return bool(_c.lock_is_mine(self._pointer))

    def consistent(self):
        """Declare that what the lock guards is consistent, after OwnerDied."""
        _c.lock_consistent(self._pointer)

    def _take(self, at_once, wait, blocking, timeout):
        if not blocking:
            return _c.unless(errno.EBUSY, at_once, self._pointer)
        end = None if timeout < 0 else time.monotonic() + timeout
        while True:
            left = None if end is None else end - time.monotonic()
            try:
                return _c.unless(errno.ETIMEDOUT, wait, self._pointer, _c.timeout_of(left))
            except Error as error:
                # Python runs handlers of signals here, and KeyboardInterrupt ends the wait.
                if error.errno != errno.EINTR:
                    raise

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *_):
        self.release()


class _Reading:
    def __init__(self, lock):
        self._lock = lock

    def __enter__(self):
        self._lock.acquire_read()
        return self._lock

    def __exit__(self, *_):
        self._lock.release_read()


class Barrier:
    """A barrier over all nodes, one thread a node: kdsm_barrier_wait(3)."""

    def __init__(self, region, offset):
        self._state = _c.BarrierState()
        _c.barrier_init(byref(self._state), region._pointer, offset)
        self._region = region._object

    def wait(self, timeout=None):
        """Wait for all nodes; False if one has not arrived, and another call goes on waiting."""
        return _c.unless(errno.ETIMEDOUT, _c.barrier_wait, byref(self._state),
                         _c.timeout_of(timeout))


class TreeBarrier:
    """A barrier over any threads of each node that makes a coherent region consistent.

    It takes TREE_BARRIER_SIZE bytes at offset of every part of sync. participants has the number
    of threads of each node; None means one each: kdsm_tree_barrier_wait(3).
    """

    def __init__(self, memory, sync, offset, participants=None):
        self._state = _c.TreeBarrierState()
        count = None if participants is None else (c_uint32 * len(participants))(*participants)
        _c.tree_barrier_init(byref(self._state), memory._pointer if memory else None,
                             sync._pointer, offset, count)
        self._regions = (memory._object if memory else None, sync._object)

    def wait(self, timeout=None):
        """Wait for all participants. A timeout breaks the barrier, so it is an Error."""
        _c.tree_barrier_wait(byref(self._state), _c.timeout_of(timeout), None)
