"""Classifies frames of Python stacks by name: which wait, for what, and which belong to a library.

A frame is `file.py(12): function` or `<built-in method acquire of _thread.lock object at 0x7f>`, as torch writes it:
tables and links have that name. What is shown is `function (file.py:12)`, of `function_name`.
Python's profiler hook reports calls of C functions only where bytecode calls them: `with lock:` leaves no frame.
"""

from __future__ import annotations

import re

from .regex import regex

_COLLECTS = regex(r"Python GC|built-in (?:method|function) collect|\bgc\.collect|\bgc\.py")
_NAMELESS = regex(r"\(\d+\): <(?:genexpr|lambda|listcomp|setcomp|dictcomp)>$")
_EXPLICIT = regex(r"built-in (?:method|function) collect\b")
_BACKWARD = regex(r"<built-in method run_backward of torch")
_MACHINERY = regex(
    r"^torch/(?:nn/modules/|autograd/|_tensor\.py|utils/_contextlib\.py|optim/optimizer\.py)|^nn\.Module: "
)
_STARTS_WORKERS = regex(r"torch/utils/data/dataloader\.py\(\d+\): (?:_get_iterator|__iter__)$")
_ZMQ_RECEIVES = r"^zmq/(?:backend/cython/_zmq|sugar/poll)\.py\(\d+\): (?:\S+\.)?(?:recv|poll|zmq_poll)$"
_WAITS = (
    ("sleeps", regex(r"<built-in function sleep>")),
    (
        "waits for a lock or another thread",
        regex(
            r"<built-in method (?:acquire|__enter__) of _?thread\.\w*lock\b"
            r"|<built-in method \w+ of _thread\.(?:R?Lock|_ThreadHandle)\b"
            r"|<built-in method (?:get|put) of _queue\.SimpleQueue|\b_wait_for_tstate_lock$"
            r"|<built-in method wait of torch\S*Future",
            re.IGNORECASE,
        ),
    ),
    (
        "waits for another process",
        regex(r"<built-in (?:function|method) (?:waitpid|wait4|waitid|WaitForSingleObject)\b"),
    ),
    (
        "waits for a file or a socket",
        regex(
            r"<built-in method (?:poll|select) of select\."
            r"|<built-in function (?:select|open|fsync|fdatasync|read|write|sendfile)>"
            r"|<built-in method (?:recv|recv_into|recvfrom|accept|_accept|connect|send|sendall) of _?socket"
            r"|<built-in method (?:read|readinto|readline|readall|write|flush|close) of _(?:io|ssl)\."
            rf"|{_ZMQ_RECEIVES}"
        ),
    ),
)
_WITHOUT_FILE = r"stdin>|ipython-input-|command-"  # code of a console, a notebook or Databricks, which is the program's
_PYTHON_FILE = regex(rf"\.py$|^<(?:{_WITHOUT_FILE})")
_INSTALLED = (
    rf"^<(?!{_WITHOUT_FILE})|"
    r"(?:^|[/\\])(?:site|dist)-packages[/\\]|(?:^|[/\\])torchinductor_[^/\\]*[/\\]|(?:^|[/\\])lib[/\\]python3[.\d]*[/\\]"
)
_LIBRARY_FILE = regex(rf"{_INSTALLED}|(?:^|[/\\])torch[/\\]|^\?\?$")
# Of Python's library, whose folder torch cuts off; without names that programs give their own files, such as test.
_MODULES = (
    "abc|ast|base64|bisect|bz2|codecs|contextlib|copy|copyreg|csv|dataclasses|datetime|decimal|enum|fnmatch|fractions|"
    "functools|genericpath|glob|gzip|hashlib|heapq|hmac|inspect|linecache|locale|lzma|ntpath|os|pathlib|pickle|posixpath|"
    "pprint|queue|random|re|reprlib|select|selectors|shutil|socket|sre_compile|sre_parse|ssl|string|struct|subprocess|"
    "tarfile|tempfile|textwrap|threading|traceback|typing|uuid|warnings|weakref|zipfile"
)
_PACKAGES = (
    "asyncio|collections|concurrent|ctypes|encodings|importlib|json|logging|multiprocessing|re|sqlite3|urllib|xml"
)
_LIBRARY = regex(rf"{_INSTALLED}|^torch/|^kinetoscope/|^(?:{_MODULES})\.py\(|^(?:{_PACKAGES})/\S+\(|^nn\.Module: ")
_SPELLS_WAIT = regex(r"^(?:threading|queue|subprocess|concurrent/\S+|multiprocessing/\S+)\.py\(\d+\): (?!_)(\w+)$")
_BEGINS_THREAD = regex(r"^threading\.py\(\d+\): (?:_bootstrap|_bootstrap_inner|run)$")
_WAITING_FUNCTIONS = {"wait", "wait_for", "acquire", "join", "get", "put", "result"}
_AWAITS_MESSAGE = regex(
    r"<built-in method get of _queue\.SimpleQueue|<built-in method (?:poll|select|control) of select\."
    r"|<built-in function select>|<built-in method (?:recv|recv_into|recvfrom|recvmsg|accept|_accept) of _?socket"
    r"|<built-in method (?:recv|recv_multipart|poll) of zmq\."
    r"|^selectors\.py\(\d+\): select$"
    rf"|^multiprocessing/connection\.py\(\d+\): (?:recv|recv_bytes|poll|wait)$|{_ZMQ_RECEIVES}"
)
_MESSAGE_FUNCTIONS = {"get", "wait", "wait_for"}
_BUILT_IN = regex(r"^<built-in (?:function|method) (?P<name>\w*)(?: of (?P<owner>[\w.]+) object)?>$")
_NO_CLASS = regex(r"(?:type|module|PyCapsule|pybind11_\w+)?$")  # the latter two hold functions that pybind11 binds
_ADDRESS = regex(r" at 0x[0-9a-fA-F]+")
FRAME = r"^(?P<file>(?s:.*[./\\>](?:.*\S)?))\((?P<line>[0-9]{1,9})\): (?P<function>(?s:.+))$"
"""Of a function with a file, for regular expressions of Python and of Polars; `load(3): x` is no such."""
_FRAME = regex(FRAME)


def collects_garbage(frame: str) -> bool:
    """Whether Python's garbage collector runs in a frame (or range) of this name."""
    return bool(_COLLECTS.search(frame))


def is_explicit_collection(frame: str) -> bool:
    """Whether a frame is a program's own call of gc.collect."""
    return bool(_EXPLICIT.search(frame))


def is_machinery(frame: str) -> bool:
    """Whether a frame is torch's own way to a module, an optimizer or autograd: it says nothing of what takes time."""
    return bool(_MACHINERY.search(frame)) or runs_backward(frame)


def runs_backward(frame: str) -> bool:
    """Whether autograd's engine, which is C++, runs in a frame of this name."""
    return bool(_BACKWARD.search(frame))


def starts_workers(frame: str) -> bool:
    """Whether a DataLoader starts its workers in a frame of this name."""
    return bool(_STARTS_WORKERS.search(frame))


def describe_wait(frame: str) -> str:
    """That a thread waits in a frame of this name, and for what, in words; empty if it doesn't wait."""
    return next((what for what, pattern in _WAITS if pattern.search(frame)), "")


def is_wait(frame: str) -> bool:
    """Whether a thread waits in a frame of this name, or in the function of Python's library around it.

    A call that began before the recording has no frame of its own: then only the functions around it show.
    """
    return bool(describe_wait(frame)) or waiting_function(frame).rpartition(".")[2] in _WAITING_FUNCTIONS


def begins_thread(frame: str) -> bool:
    """Whether a frame is Python's own that begins a thread: without another one inside, nothing of it was recorded."""
    return bool(_BEGINS_THREAD.search(frame))


def awaits_message(frame: str) -> bool:
    """Whether a thread waits in a frame until another thread or process sends it something: in a queue, on a socket."""
    return bool(_AWAITS_MESSAGE.search(frame)) or waiting_function(frame).rpartition(".")[2] in _MESSAGE_FUNCTIONS


def is_of_library(frame: str) -> bool:
    """Whether a frame belongs to Python's library, torch or another installed package, or to no file."""
    return bool(_LIBRARY.search(frame))


def is_nameless(frame: str) -> bool:
    """Whether a frame is of a generator, a comprehension or a lambda: the function around it has the name."""
    return bool(_NAMELESS.search(frame))


def is_of_program(frame: str) -> bool:
    """Whether a frame is a function of the program that has a name of its own."""
    return not is_of_library(frame) and not is_nameless(frame)


def is_python_file(file: str) -> bool:
    """Whether a source file is Python's, or code of a console or a notebook."""
    return bool(_PYTHON_FILE.search(file))


def is_library_file(file: str) -> bool:
    """Whether a source file belongs to Python's library, torch or another installed package, or is none."""
    return bool(_LIBRARY_FILE.search(file))


def waiting_function(frame: str) -> str:
    """The public function of Python's library that waits in a frame, such as queue.get; empty for any other frame."""
    match = _SPELLS_WAIT.match(frame)
    return f"{frame.split('.py(', 1)[0].replace('/', '.')}.{match.group(1)}" if match else ""


def function_name(frame: str) -> str:
    """What a frame is called wherever it is shown; the page has the same rule (readable_names.ts).

    `file.py(12): step` is `step (file.py:12)`. A function without a file is called as its callers write it: `astype` of
    a numpy.ndarray object is ndarray.astype. Any other name remains as it is.
    """
    if "): " in frame and (match := _FRAME.match(frame)):  # the pattern alone looks at all of a long kernel's name
        return f"{match['function']} ({match['file']}:{match['line']})"
    frame = without_address(frame)
    match = _BUILT_IN.match(frame)
    if not match:
        return frame
    owner = (match["owner"] or "").rpartition(".")[2]
    return match["name"] or "C++ function" if _NO_CLASS.match(owner) else f"{owner}.{match['name']}"


def without_address(frame: str) -> str:
    """The frame without the address of its object, which differs from call to call."""
    return _ADDRESS.sub("", frame)
