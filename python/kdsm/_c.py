# SPDX-License-Identifier: LGPL-2.1-or-later
"""The C side: structs and functions of libkdsm by ctypes, and errors as exceptions.

Each struct has the fields of the C struct of its name; tests/languages compares their offsets with
the headers. Programs use the package kdsm, not this module.
"""

import ctypes
import errno
import operator
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32,
                    c_size_t, c_uint, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p)

SONAME = "libkdsm.so.0"
LOCATION_SIZE = 64
NOTICES_MAX = 128
LOCK_LEVELS = 8
FOREVER = 2**64 - 1


class Error(OSError):
    """A call of libkdsm failed: errno is the error number, strerror the text of kdsm_error(3)."""


class OwnerDied(Error):
    """The former holder of a lock died. The catcher holds the lock.

    It makes the data consistent, calls Lock.consistent(), and then Lock.release().
    """


# ---- structs ----

class RegionAttr(Structure):
    c_name = "kdsm_region_attr"
    _fields_ = [("argsz", c_size_t), ("size", c_uint64), ("block_size", c_uint32),
                ("policy", c_uint32), ("mode", c_uint32), ("flags", c_uint32),
                ("segments", c_void_p), ("segment_count", c_uint32), ("address", c_uint64)]


class Counts(Structure):
    c_name = "kdsm_counts"
    _fields_ = [("argsz", c_size_t)] + [(name, c_uint64) for name in (
        "get", "put", "cas", "faa", "am", "bytes", "calls", "find", "steal")]


class LockSettings(Structure):
    c_name = "kdsm_lock_settings"
    _fields_ = [("mask", c_uint32), ("t_dc", c_uint32), ("t_r", c_uint32), ("t_w", c_uint32),
                ("t_l", c_uint32 * LOCK_LEVELS), ("keep", c_uint64)]


class LockAttr(Structure):
    c_name = "kdsm_lock_attr"
    _fields_ = [("argsz", c_size_t), ("kind", c_uint32), ("flags", c_uint32),
                ("settings", LockSettings)]


class Notice(Structure):
    c_name = "kdsm_notice"
    _fields_ = [("ts", c_uint64), ("first", c_uint64), ("count", c_uint32), ("writer", c_uint16),
                ("share", c_uint16)]


class Signature(Structure):
    """What a release hands to an acquire. bytes(signature) may be sent by any means."""

    c_name = "kdsm_signature"
    _fields_ = [("floor", c_uint64), ("count", c_uint32), ("reserved", c_uint32),
                ("notices", Notice * NOTICES_MAX)]

    def __bytes__(self):
        return ctypes.string_at(byref(self), 16 + 24 * self.count)

    @classmethod
    def from_bytes(cls, data):
        """The signature that bytes(signature) gave on another node."""
        if not 16 <= len(data) <= ctypes.sizeof(cls):
            raise ValueError(f"a signature has no {len(data)} bytes")
        signature = cls()
        ctypes.memmove(byref(signature), bytes(data), len(data))
        if len(data) != 16 + 24 * signature.count:
            raise ValueError(f"a signature of {signature.count} notices has no {len(data)} bytes")
        return signature


class BarrierState(Structure):
    c_name = "kdsm_barrier"
    _fields_ = [("region", c_void_p), ("offset", c_uint64), ("generation", c_uint64)]


class TreeBarrierState(Structure):
    c_name = "kdsm_tree_barrier"
    _fields_ = [("region", c_void_p), ("sync", c_void_p), ("offset", c_uint64),
                ("participants", c_uint32), ("parent", c_uint16), ("children", c_uint16 * 4),
                ("child_count", c_uint8), ("order", c_uint8)]


FAILED = CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class JobAttr(Structure):
    c_name = "kdsm_job_attr"
    _fields_ = [("argsz", c_size_t), ("name", c_char_p), ("kdsm", c_void_p), ("flags", c_uint32),
                ("size", c_uint32), ("rank", c_uint32), ("block_size", c_uint32),
                ("memory", c_uint64), ("sync", c_uint64), ("timeout", c_uint64),
                ("failed", FAILED), ("context", c_void_p)]


class SpreadState(Structure):
    c_name = "kdsm_spread"
    _fields_ = [("base", c_void_p), ("count", c_uint64), ("size", c_uint64), ("stride", c_uint64),
                ("members", c_uint32), ("reserved", c_uint32)]


class LoopState(Structure):
    c_name = "kdsm_loop"
    _fields_ = [("job", c_void_p), ("count", c_uint64), ("chunk", c_uint64), ("place", c_uint64)]


class Completion(Structure):
    c_name = "kdsm_ring_completion"
    _fields_ = [("data", c_uint64), ("result", c_uint64), ("status", c_int32), ("opcode", c_uint8),
                ("reserved", c_uint8), ("node", c_uint16), ("reserved2", c_uint64)]


# ---- functions ----

class InRange:
    """An argument that is an integer of a type, which ctypes alone would cut off."""

    def __init__(self, kind):
        self.kind = kind
        self.most = 2**(8 * ctypes.sizeof(kind)) - 1

    def from_param(self, value):
        if not 0 <= operator.index(value) <= self.most:
            raise OverflowError(f"{value} is not between 0 and {self.most}")
        return self.kind(value)


IN_RANGE = {kind: InRange(kind) for kind in (c_size_t, c_uint, c_uint32, c_uint64)}


class Library:
    """A shared library, whose functions raise Error for a negative result."""

    def __init__(self, name):
        try:
            self.library = ctypes.CDLL(name, use_errno=True)
        except OSError as error:
            raise ImportError(f"{error}: install libkdsm, or set LD_LIBRARY_PATH") from None

    def checked(self, name, *arguments):
        """A function that returns 0 or a positive number, or a negative errno."""
        function = self.plain(name, c_int, *arguments)
        function.errcheck = check
        return function

    def plain(self, name, result, *arguments):
        """A function whose result is no error."""
        function = getattr(self.library, name)
        function.restype = result
        function.argtypes = [IN_RANGE.get(argument, argument) for argument in arguments]
        return function


def raise_error(number):
    """Raise the error with which a function has just returned in this thread."""
    kind = OwnerDied if number == -errno.EOWNERDEAD else Error
    raise kind(-number, error_text(number).decode())


def check(result, _function, _arguments):
    if result < 0:
        raise_error(result)
    return result


def unless(number, function, *arguments):
    """False if the function fails with this errno, which is a result; otherwise True."""
    try:
        function(*arguments)
    except Error as error:
        if error.errno != number:
            raise
        return False
    return True


def timeout_of(seconds):
    """A timeout in ns; None never ends, and one below 0 counts as 0."""
    return FOREVER if seconds is None else max(0, min(FOREVER - 1, int(seconds * 1e9)))


def sized(struct, **fields):
    """A struct whose argsz is set."""
    made = struct(argsz=ctypes.sizeof(struct), **fields)
    for name, value in fields.items():
        if isinstance(value, int) and getattr(made, name) != value:
            raise OverflowError(f"{name} cannot be {value}")
    return made


kdsm = Library(SONAME)
error_text = kdsm.plain("kdsm_error", c_char_p, c_int)
strerror = kdsm.plain("kdsm_strerror", c_char_p, c_int)
version = kdsm.plain("kdsm_version", c_char_p)

P = c_void_p  # of an object of the library
PLACE = (P, c_uint, c_uint64)
RANGE = (P, c_uint64, c_uint64)
ATOMIC = (P, c_uint64, c_uint, c_uint)

open_cluster = kdsm.checked("kdsm_open", c_uint, POINTER(P))
close_cluster = kdsm.plain("kdsm_close", None, P)
node = kdsm.plain("kdsm_node", c_uint, P)
nodes = kdsm.plain("kdsm_nodes", c_uint, P)
domain = kdsm.plain("kdsm_domain", c_int, P)
is_local = kdsm.plain("kdsm_is_local", c_int, P)
cluster_name = kdsm.plain("kdsm_cluster_name", c_char_p, P)
location = kdsm.checked("kdsm_location", P, c_uint, c_char * LOCATION_SIZE)
settle = kdsm.checked("kdsm_settle", P)
counts = kdsm.checked("kdsm_counts", P, POINTER(Counts))
region_destroy = kdsm.checked("kdsm_region_destroy", P, c_char_p)

region_open = kdsm.checked("kdsm_region_open", P, c_char_p, POINTER(RegionAttr), POINTER(P))
region_open_coherent = kdsm.checked("kdsm_region_open_coherent", P, c_char_p, POINTER(RegionAttr),
                                    c_uint64, POINTER(P), POINTER(P))
region_close = kdsm.plain("kdsm_region_close", None, P)
region_size = kdsm.plain("kdsm_region_size", c_uint64, P)
region_part_size = kdsm.plain("kdsm_region_part_size", c_uint64, P)
region_part = kdsm.plain("kdsm_region_part", c_void_p, P)
region_address = kdsm.plain("kdsm_region_address", c_void_p, P)

get = kdsm.checked("kdsm_get", *PLACE, c_void_p, c_size_t)
put = kdsm.checked("kdsm_put", *PLACE, c_void_p, c_size_t)
cas = kdsm.checked("kdsm_cas", *PLACE, c_uint64, c_uint64, POINTER(c_uint64))
faa = kdsm.checked("kdsm_faa", *PLACE, c_uint64, POINTER(c_uint64))
put_notify = kdsm.checked("kdsm_put_notify", *PLACE, c_uint64)
wait = kdsm.checked("kdsm_wait", P, c_uint64, c_uint64, c_uint64)

release = kdsm.checked("kdsm_release", P, POINTER(Signature))
acquire = kdsm.checked("kdsm_acquire", P, POINTER(Signature))
signature_merge = kdsm.plain("kdsm_signature_merge", None, POINTER(Signature), POINTER(Signature))
refresh = kdsm.checked("kdsm_refresh", *RANGE)
prefetch = kdsm.checked("kdsm_prefetch", *RANGE)
flush = kdsm.checked("kdsm_flush", *RANGE)
pin = kdsm.checked("kdsm_pin", *RANGE)
discard = kdsm.checked("kdsm_region_discard", *RANGE)
lost = kdsm.checked("kdsm_region_lost", P, POINTER(c_uint64), c_uint, POINTER(c_uint64))
atomic_load = kdsm.checked("kdsm_atomic_load", *ATOMIC, POINTER(c_uint64))
atomic_exchange = kdsm.checked("kdsm_atomic_exchange", *ATOMIC, c_uint64, POINTER(c_uint64))
atomic_add = kdsm.checked("kdsm_atomic_add", *ATOMIC, c_uint64, POINTER(c_uint64))
atomic_cas = kdsm.checked("kdsm_atomic_cas", *ATOMIC, c_uint64, c_uint64, POINTER(c_uint64))

barrier_init = kdsm.plain("kdsm_barrier_init", None, POINTER(BarrierState), P, c_uint64)
barrier_wait = kdsm.checked("kdsm_barrier_wait", POINTER(BarrierState), c_uint64)
tree_barrier_init = kdsm.checked("kdsm_tree_barrier_init", POINTER(TreeBarrierState), P, P,
                                 c_uint64, POINTER(c_uint32))
tree_barrier_wait = kdsm.checked("kdsm_tree_barrier_wait", POINTER(TreeBarrierState), c_uint64,
                                 POINTER(c_uint))

lock_create = kdsm.checked("kdsm_lock_create", P, c_char_p, c_uint32, POINTER(LockAttr), POINTER(P))
lock_close = kdsm.plain("kdsm_lock_close", None, P)
lock_number = kdsm.plain("kdsm_lock_number", c_uint32, P)
lock_is_mine = kdsm.plain("kdsm_lock_is_mine", c_int, P)
lock_consistent = kdsm.checked("kdsm_lock_consistent", P)
lock_interruptible = kdsm.checked("kdsm_lock_interruptible", P, c_uint64)
lock_try = kdsm.checked("kdsm_lock_try", P)
unlock = kdsm.checked("kdsm_unlock", P)
read_lock_interruptible = kdsm.checked("kdsm_read_lock_interruptible", P, c_uint64)
read_lock_try = kdsm.checked("kdsm_read_lock_try", P)
read_unlock = kdsm.checked("kdsm_read_unlock", P)

job_join = kdsm.checked("kdsm_job_join", POINTER(JobAttr), POINTER(P))
job_leave = kdsm.plain("kdsm_job_leave", c_int, P)
job_abort = kdsm.plain("kdsm_job_abort", None, P)
job_rank = kdsm.plain("kdsm_job_rank", c_uint32, P)
job_size = kdsm.plain("kdsm_job_size", c_uint32, P)
job_node = kdsm.plain("kdsm_job_node", c_uint, P, c_uint32)
job_nodes = kdsm.plain("kdsm_job_nodes", c_uint, P)
job_name = kdsm.plain("kdsm_job_name", c_char_p, P)
job_cluster = kdsm.plain("kdsm_job_cluster", c_void_p, P)
job_region = kdsm.plain("kdsm_job_region", c_void_p, P)
job_sync = kdsm.plain("kdsm_job_sync", c_void_p, P)
job_barrier = kdsm.checked("kdsm_job_barrier", P)
job_broadcast = kdsm.checked("kdsm_job_broadcast", P, c_uint32, c_void_p, c_size_t)
job_allreduce = kdsm.checked("kdsm_job_allreduce", P, c_int, c_int, c_void_p, c_size_t)
job_reduce = kdsm.checked("kdsm_job_reduce", P, c_uint32, c_int, c_int, c_void_p, c_size_t)
job_scan = kdsm.checked("kdsm_job_scan", P, c_int, c_int, c_void_p, c_size_t)
job_allgather = kdsm.checked("kdsm_job_allgather", P, c_void_p, c_size_t, c_void_p)
job_alloc = kdsm.plain("kdsm_job_alloc", c_void_p, P, c_uint64)
job_alloc_sync = kdsm.checked("kdsm_job_alloc_sync", P, c_uint64, POINTER(c_uint64))
job_spread = kdsm.checked("kdsm_job_spread", P, c_uint64, c_uint64, POINTER(SpreadState))
job_loop = kdsm.checked("kdsm_job_loop", P, c_uint64, c_uint64, POINTER(LoopState))
loop_next = kdsm.checked("kdsm_loop_next", POINTER(LoopState), POINTER(c_uint64), POINTER(c_uint64))

ring_open = kdsm.checked("kdsm_ring_open", P, c_uint, c_size_t, POINTER(P))
ring_close = kdsm.plain("kdsm_ring_close", None, P)
ring_buffer = kdsm.plain("kdsm_ring_buffer", c_void_p, P)
ring_buffer_size = kdsm.plain("kdsm_ring_buffer_size", c_size_t, P)
ring_fd = kdsm.plain("kdsm_ring_fd", c_int, P)
ring_prep_get = kdsm.checked("kdsm_ring_prep_get", *PLACE, c_void_p, c_size_t, c_uint64)
ring_prep_put = kdsm.checked("kdsm_ring_prep_put", *PLACE, c_void_p, c_size_t, c_uint64)
ring_prep_cas = kdsm.checked("kdsm_ring_prep_cas", *PLACE, c_uint64, c_uint64, c_uint64)
ring_prep_faa = kdsm.checked("kdsm_ring_prep_faa", *PLACE, c_uint64, c_uint64)
ring_submit = kdsm.checked("kdsm_ring_submit", P)
ring_wait = kdsm.checked("kdsm_ring_wait", P, c_uint, c_uint64)
ring_reap = kdsm.plain("kdsm_ring_reap", c_uint, P, POINTER(Completion), c_uint)
