# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reachable states of models, by libkdsm-reach: kdsm_reach(3), kdsm-reach(1).

    import kdsm.reach

    result = kdsm.reach.search("philosophers-10.pnml", deadlocks=True)
    print(result.states, result.deadlocks)
"""

import contextlib
import ctypes
import dataclasses
import os
import threading
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double,
                    c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p)

from . import OPEN_ALONE, OPEN_LOCAL, Cluster, _c

SONAME = "libkdsm-reach.so.0"

ORDERS = ("auto", "file", "reversed", "cuthill-mckee", "sloan", "sloan-reversed", "force",
          "force-reversed", "units", "units-reversed")
# Bytes of each node's part of the table before it grows
FIRST_TABLE = 64 << 20

FORMATS = ("auto", "pnml", "bdd", "aiger")


# ---- structs ----

class Mpz(Structure):
    """A number of GMP: limbs of 64 bits, the lowest first; the sign is that of size."""

    c_name = "mpz_t"
    _fields_ = [("alloc", c_int), ("size", c_int), ("limbs", c_void_p)]

    def __int__(self):
        count = abs(self.size)
        value = int.from_bytes(ctypes.string_at(self.limbs, 8 * count), "little") if count else 0
        return -value if self.size < 0 else value


class Message(Structure):
    c_name = "kdsm_reach_message"
    _fields_ = [("text", c_char * 512)]


class BddAttr(Structure):
    c_name = "kdsm_bdd_attr"
    _fields_ = [("argsz", c_size_t), ("table_bytes", c_uint64), ("cache_bytes", c_uint64),
                ("first_table_bytes", c_uint64), ("first_cache_bytes", c_uint64),
                ("granularity", c_uint), ("find", c_uint32)]


class TableCounts(Structure):
    c_name = "kdsm_table_counts"
    _fields_ = [("argsz", c_size_t)] + [(name, c_uint64) for name in (
        "found", "put", "index_get", "node_get", "cas", "other", "torn", "false_match", "find")]


class BddCounts(Structure):
    c_name = "kdsm_bdd_counts"
    _fields_ = [("argsz", c_size_t)] + [(name, c_uint64) for name in (
        "tasks", "hits", "home_get", "home_hit", "home_put")] + [("table", TableCounts)]


class ProgressState(Structure):
    c_name = "kdsm_reach_progress"
    _fields_ = [("level", c_uint), ("order", c_int), ("states", Mpz), ("nodes", c_uint64),
                ("table_used", c_uint64), ("table_size", c_uint64), ("seconds", c_double),
                ("level_seconds", c_double), ("tasks", c_uint64), ("remote", c_uint64)]


ON_PROGRESS = CFUNCTYPE(None, c_void_p, POINTER(ProgressState))
ON_WARNING = CFUNCTYPE(None, c_void_p, c_char_p)
STRINGS = POINTER(c_char_p)


class Options(Structure):
    c_name = "kdsm_reach_options"
    _fields_ = [("argsz", c_size_t), ("path", c_char_p), ("format", c_int), ("job", c_char_p),
                ("workers", c_uint), ("timeout", c_uint64), ("bdd", BddAttr), ("chaining", c_bool),
                ("saturation", c_bool), ("race", c_bool), ("order", c_int),
                ("order_file", c_char_p), ("deadlocks", c_bool), ("trace", c_bool),
                ("stop_at_violation", c_bool), ("counts", c_bool), ("upper_bound", STRINGS),
                ("upper_bounds", c_uint), ("bound", STRINGS), ("bounds", c_uint),
                ("invariant", STRINGS), ("invariants", c_uint), ("formula", STRINGS),
                ("formulas", c_uint), ("save", c_char_p), ("save_order", c_char_p),
                ("witness", c_char_p), ("checkpoint", c_char_p), ("interval", c_uint64),
                ("levels", c_uint64), ("progress", ON_PROGRESS), ("level", ON_PROGRESS),
                ("known", c_void_p), ("warn", ON_WARNING), ("progress_interval", c_uint64),
                ("context", c_void_p)]


class Collections(Structure):
    c_name = "kdsm_reach_collections"
    _fields_ = [("count", c_uint64), ("nodes", c_uint64), ("seconds", c_double)]


class VerdictState(Structure):
    c_name = "kdsm_reach_verdict"
    _fields_ = [("name", c_char_p), ("violated", c_bool), ("steps", c_uint64), ("at_most", c_bool)]


class Marked(Structure):
    c_name = "kdsm_reach_marked"
    _fields_ = [("place", c_char_p), ("tokens", c_uint64)]


class StepState(Structure):
    c_name = "kdsm_reach_step"
    _fields_ = [("label", c_char_p), ("state", c_char_p), ("marking", POINTER(Marked)),
                ("marked", c_uint), ("inputs", c_char_p)]


class TraceState(Structure):
    c_name = "kdsm_reach_trace"
    _fields_ = [("what", c_char_p), ("property", c_uint), ("steps", c_uint64),
                ("step", POINTER(StepState))]


class UpperBoundState(Structure):
    c_name = "kdsm_reach_upper_bound"
    _fields_ = [("places", c_char_p), ("tokens", c_uint64)]


class FormulaState(Structure):
    c_name = "kdsm_reach_formula"
    _fields_ = [("id", c_char_p), ("answer", c_int), ("bound", c_uint64), ("why", c_char_p),
                ("trace", POINTER(TraceState))]


class ResultState(Structure):
    c_name = "kdsm_reach_result"
    _fields_ = [("argsz", c_size_t), ("model", c_char_p), ("kind", c_char_p), ("bits", c_uint),
                ("relations", c_uint), ("clusters", c_uint), ("order", c_int), ("orders", c_uint),
                ("relation_seconds", c_double), ("states", Mpz), ("nodes", c_uint64),
                ("saturation", c_bool), ("levels", c_uint64), ("tasks", c_uint64),
                ("table_used", c_uint64), ("table_size", c_uint64), ("complete", c_bool),
                ("ended_early", c_bool), ("stopped", c_bool), ("seconds", c_double),
                ("from_level", c_uint64), ("before", c_double), ("unsaved", c_bool),
                ("workers", c_uint), ("cluster_nodes", c_uint), ("winner", c_uint),
                ("remote", _c.Counts), ("tasks_least", c_uint64), ("tasks_most", c_uint64),
                ("memory", c_uint64), ("counts", BddCounts), ("collections", Collections),
                ("properties", c_uint), ("verdict", POINTER(VerdictState)), ("deadlocks", Mpz),
                ("counted", c_bool), ("fired", Mpz), ("place_tokens", c_uint64),
                ("marking_tokens", c_uint64), ("upper_bounds", c_uint),
                ("upper_bound", POINTER(UpperBoundState)), ("traces", c_uint),
                ("trace", POINTER(TraceState)), ("formulas", c_uint),
                ("formula", POINTER(FormulaState))]


_library = _c.Library(SONAME)
_open = _library.plain("kdsm_reach_open", c_int, _c.P, POINTER(Options), POINTER(_c.P),
                       POINTER(Message))
_search = _library.plain("kdsm_reach_search", c_int, _c.P, POINTER(ResultState), POINTER(Message))
_stop = _library.plain("kdsm_reach_stop", None, _c.P)
_close = _library.plain("kdsm_reach_close", None, _c.P)
_result_init = _library.checked("kdsm_reach_result_init", POINTER(ResultState))
_result_free = _library.plain("kdsm_reach_result_free", None, POINTER(ResultState))


# ---- results ----

@dataclasses.dataclass
class Verdict:
    """Whether a property is violated, and after how many steps at the earliest."""

    name: str
    violated: bool
    steps: int


@dataclasses.dataclass
class Step:
    """A state of a trace, and the transition that led there; of a net, the marked places, too."""

    label: str
    state: str
    marking: dict


@dataclasses.dataclass
class Trace:
    """A shortest path to a deadlock or to a violation."""

    what: str
    steps: list


@dataclasses.dataclass
class Formula:
    """The answer to a formula: True, False, None (unknown), or a number of tokens."""

    id: str
    answer: object
    why: str
    trace: Trace


@dataclasses.dataclass
class Result:
    """The result of a search. Node 0 has all of it, other nodes only that the search ended."""

    model: str
    kind: str
    states: int
    complete: bool
    stopped: bool
    seconds: float
    levels: int
    nodes: int  #: of the BDD of the states
    deadlocks: int  #: None unless they were asked for
    verdicts: list
    traces: list
    formulas: list
    upper_bounds: dict  #: tokens by sum of places
    fired: int  #: None unless counts were asked for, as are the next two
    place_tokens: int
    marking_tokens: int


@dataclasses.dataclass
class Progress:
    """What a search has found so far."""

    level: int
    states: int
    nodes: int
    seconds: float


def _text(data):
    return data.decode(errors="replace") if data is not None else None


def _trace(trace):
    steps = [Step(_text(step.label), _text(step.state),
                  {_text(m.place): m.tokens for m in step.marking[:step.marked]})
             for step in trace.step[:trace.steps + 1]]
    return Trace(_text(trace.what), steps)


def _formula(formula):
    answer = (None, False, True, formula.bound)[formula.answer]
    return Formula(_text(formula.id), answer, _text(formula.why),
                   _trace(formula.trace[0]) if formula.trace else None)


def _result(state, deadlocks):
    counted = state.counted
    return Result(
        model=_text(state.model), kind=_text(state.kind), states=int(state.states),
        complete=state.complete, stopped=state.stopped, seconds=state.seconds,
        levels=state.levels, nodes=state.nodes,
        deadlocks=int(state.deadlocks) if deadlocks else None,
        verdicts=[Verdict(_text(v.name), v.violated, v.steps)
                  for v in state.verdict[:state.properties]],
        traces=[_trace(t) for t in state.trace[:state.traces]],
        formulas=[_formula(f) for f in state.formula[:state.formulas]],
        upper_bounds={_text(b.places): b.tokens for b in state.upper_bound[:state.upper_bounds]},
        fired=int(state.fired) if counted else None,
        place_tokens=state.place_tokens if counted else None,
        marking_tokens=state.marking_tokens if counted else None)


# ---- searching ----

def _strings(texts):
    texts = [os.fsencode(text) for text in texts]
    return ctypes.cast((c_char_p * len(texts))(*texts), STRINGS) if texts else None


def _path(path):
    return None if path is None else os.fsencode(path)


def _fail(number, message):
    raise _c.Error(-number, message.text.decode(errors="replace"))


class _Callbacks:
    """Functions that the search calls. An exception in one stops the search, which raises it."""

    def __init__(self, progress, warn):
        self.exception = None
        self.reach = _c.P()
        self.progress = progress
        self.warn = warn

    def guarded(self, function, *arguments):
        try:
            function(*arguments)
        except BaseException as exception:
            self.exception = self.exception or exception
            if self.reach:  # else the model is still being read
                _stop(self.reach)

    def on_progress(self, _context, state):
        now = state[0]
        self.guarded(self.progress, Progress(now.level, int(now.states), now.nodes, now.seconds))

    def on_warning(self, _context, text):
        self.guarded(self.warn, _text(text))


def search(path, *, cluster=None, job="python", workers=None, timeout=30, format="auto",
           strategy="saturation", order="auto", order_file=None, table_bytes=None,
           cache_bytes=None, deadlocks=False, trace=False, stop_at_violation=False, counts=False,
           upper_bounds=(), bounds=(), invariants=(), formulas=(), save=None, save_order=None,
           witness=None, checkpoint=None, interval=60, levels=0, progress=None,
           progress_interval=0.2, warn=None):
    """Find the reachable states of the model in a file; returns a Result.

    Without a cluster the search runs on this machine alone. On a cluster every node calls this
    function with the same arguments. The strategy is "bfs", "chaining" or "saturation"; "race" lets
    nodes of a cluster try several, from saturation on. workers is the number of threads, by default
    one for each processor. table_bytes and cache_bytes are sizes over all nodes, by default a
    quarter and an eighth of the memory of this machine, for each node. The other arguments are the
    options of kdsm-reach(1). progress is called with a Progress every progress_interval seconds,
    warn with a text; both run in another thread. KeyboardInterrupt stops
    the search.

    Raises kdsm.Error with the reason if the model cannot be read or the search fails.
    """
    if strategy not in ("bfs", "chaining", "saturation", "race"):
        raise ValueError(f"there is no strategy {strategy!r}")
    own = cluster or Cluster(OPEN_LOCAL | OPEN_ALONE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * own.nodes
    table_bytes = table_bytes or memory // 4
    cache_bytes = cache_bytes or table_bytes // 2
    callbacks = _Callbacks(progress, warn)
    options = _c.sized(
        Options, path=os.fsencode(path), format=FORMATS.index(format), job=job.encode(),
        workers=workers or min(256, len(os.sched_getaffinity(0))),
        timeout=_c.timeout_of(timeout), order=ORDERS.index(order), order_file=_path(order_file),
        chaining=strategy == "chaining", saturation=strategy in ("saturation", "race"),
        race=strategy == "race", deadlocks=deadlocks, trace=trace or witness is not None,
        stop_at_violation=stop_at_violation, counts=counts, upper_bound=_strings(upper_bounds),
        upper_bounds=len(upper_bounds), bound=_strings(bounds), bounds=len(bounds),
        invariant=_strings(invariants), invariants=len(invariants), formula=_strings(formulas),
        formulas=len(formulas), save=_path(save), save_order=_path(save_order),
        witness=_path(witness), checkpoint=_path(checkpoint), interval=_c.timeout_of(interval),
        levels=levels,
        progress=ON_PROGRESS(callbacks.on_progress) if progress else ON_PROGRESS(),
        warn=ON_WARNING(callbacks.on_warning) if warn else ON_WARNING(),
        progress_interval=_c.timeout_of(progress_interval))
    options.bdd.table_bytes = table_bytes
    options.bdd.cache_bytes = cache_bytes
    options.bdd.first_table_bytes = min(table_bytes, FIRST_TABLE * own.nodes)
    options.bdd.first_cache_bytes = min(cache_bytes, FIRST_TABLE // 2 * own.nodes)
    return _run(own, options, callbacks, deadlocks)


def _search_in_thread(reach, state, message):
    """Search in another thread, so that KeyboardInterrupt stops the search."""
    outcome, done = [], threading.Event()

    def run():
        outcome.append(_search(reach, byref(state), byref(message)))
        done.set()

    threading.Thread(target=run).start()
    try:
        done.wait()  # Thread.join() takes the thread for dead after an interrupt.
    except BaseException:
        _stop(reach)
        while not done.is_set():  # The search uses memory of the caller until then.
            with contextlib.suppress(KeyboardInterrupt):
                done.wait()
        raise
    return outcome[0]


def _run(cluster, options, callbacks, deadlocks):
    state, message = _c.sized(ResultState), Message()
    error = _open(cluster._pointer, byref(options), byref(callbacks.reach), byref(message))
    if error:
        _fail(error, message)
    try:
        _result_init(byref(state))
        try:
            if not callbacks.exception:
                error = _search_in_thread(callbacks.reach, state, message)
            if callbacks.exception:
                raise callbacks.exception
            if error:
                _fail(error, message)
            return _result(state, deadlocks)
        finally:
            _result_free(byref(state))
    finally:
        _close(callbacks.reach)
