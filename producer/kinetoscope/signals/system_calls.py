"""What threads of this process read, write, flush, lock or connect to, while the kernel lets them wait for it.

Sources: proc(5) for the formats; the numbers are those of Linux's arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h, in whose calls below the first argument is a file descriptor.
"""

from __future__ import annotations

import platform
import socket
import struct
from contextlib import suppress
from functools import cached_property
from pathlib import Path

_OPERATIONS = {
    "x86_64": {
        **dict.fromkeys((0, 17, 19, 45, 47), "read"),  # read, pread64, readv, recvfrom, recvmsg
        **dict.fromkeys((1, 18, 20, 44, 46), "write"),  # write, pwrite64, writev, sendto, sendmsg
        **dict.fromkeys((74, 75), "flush"),  # fsync, fdatasync
        42: "connect",
        72: "fcntl",
        73: "lock",  # flock
    },
    "aarch64": {
        **dict.fromkeys((63, 65, 67, 207, 212), "read"),
        **dict.fromkeys((64, 66, 68, 206, 211), "write"),
        **dict.fromkeys((82, 83), "flush"),
        203: "connect",
        25: "fcntl",
        32: "lock",
    },
}
_WAITING_FCNTLS = (7, 38)  # F_SETLKW, F_OFD_SETLKW
_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))


class SystemCalls:
    """What threads wait for at one time."""

    def waited_for(self, task: Path) -> dict[str, str]:
        """Return what the system call of a thread waits for; empty if it is in none of those above.

        `operation` is read, write, flush, lock or connect; `file` a path, `pipe:[…]`, or `host:port` of a connection.

        Args:
            task: The thread's folder in /proc/self/task.
        """
        try:
            number, *arguments = (int(value, 0) for value in (task / "syscall").read_text().split())
            operation = _OPERATIONS.get(platform.machine(), {}).get(number, "")
            if operation == "fcntl":
                operation = "lock" if arguments[1] in _WAITING_FCNTLS else ""
            return {"operation": operation, "file": self._file(task, arguments[0])} if operation else {}
        except (OSError, ValueError, IndexError):  # it runs, has ended or is hidden
            return {}

    def _file(self, task: Path, descriptor: int) -> str:
        target = str((task / "fd" / str(descriptor)).readlink())
        return self._peers.get(target, target) if target.startswith("socket:") else target

    @cached_property
    def _peers(self) -> dict[str, str]:
        """The other end of each TCP connection of the machine."""
        peers = {}
        for table in _TABLES:
            with suppress(OSError):  # a machine without IPv6
                for line in table.read_text().splitlines()[1:]:
                    fields = line.split()
                    peers[f"socket:[{fields[9]}]"] = _address(*fields[2].split(":"))
        return peers


def _address(host: str, port: str) -> str:
    """Such as 10.0.0.5:29500. Words of the host are in the processor's order of bytes."""
    words = bytes.fromhex(host)
    count = len(words) // 4
    address = struct.pack(f"={count}I", *struct.unpack(f">{count}I", words))
    text = socket.inet_ntop(socket.AF_INET if count == 1 else socket.AF_INET6, address).removeprefix("::ffff:")
    return f"[{text}]:{int(port, 16)}" if ":" in text else f"{text}:{int(port, 16)}"
