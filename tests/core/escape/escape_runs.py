"""Escapes that need a worker to themselves.

Their worker is theirs alone because of what they end, flood or forge.

Each is one execution. The host says how it ended; its own word counts for nothing but the value.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from forging import PRELUDE

from healkit.core.contracts.execution import Grants

NAMESPACES, LANDLOCK = "namespaces", "landlock"


@dataclasses.dataclass(frozen=True)
class Run:
    """Execution of an escape: `code` defines `attempt()`, `ending` is SUCCESS or the failure's code that it must have.

    `value` is what it must return, `None` where it returns nothing. `landlock` and `said` are for what only the
    namespaces tier stops: the ending there, and the sentence of docs/isolation.md that admits it. `within_s` is how long
    it may take from the call to the outcome.
    """

    name: str
    code: str
    ending: str
    value: Any = None
    landlock: str = ""
    said: str = ""
    timeout_s: float = 50.0  # of a machine where a hundred workers share two cores
    within_s: float = 60.0
    grants: Grants = Grants(memory_mb=256)

    def expected(self, tier: str) -> str:
        """Return the ending that this tier must give."""
        return self.landlock if tier == LANDLOCK and self.landlock else self.ending

    @property
    def tool(self) -> str:
        """Its name in the vault."""
        return "run_" + "".join(c if c.isalnum() else "_" for c in self.name.lower())

    @property
    def source(self) -> str:
        """Return the code of the tool."""
        return f"{PRELUDE}\n{self.code}\n\ndef {self.tool}():\n    return attempt()\n"


def _run(name: str, body: str, ending: str, value: Any = None, **more: Any) -> Run:
    lines = "\n".join(f"    {line}" if line else "" for line in body.strip("\n").splitlines())
    return Run(name, f"def attempt():\n{lines}\n", ending, value, **more)


_FORGED = [
    _run("forged idle", "publish('status', {'execution_state': 'idle'})\nprint('afterwards')\nreturn 42", "SUCCESS", 42),
    _run("forged error", "publish('error', {'ename': 'E', 'evalue': 'v', 'traceback': []})\nreturn 42", "SUCCESS", 42),
    _run("forged reply", "publish('execute_reply', {'status': 'error', 'execution_count': 1})\nreturn 42", "SUCCESS", 42),
    _run("forged display of another execution",
         "publish('display_data', {'data': {'text/plain': 'forged'}, 'metadata': {}}, parent={'msg_id': 'other'})\nreturn 42",
         "SUCCESS", 42),
    _run("message with a wrong signature",
         "publish('stream', {'name': 'stdout', 'text': 'forged'}, key=b'0' * 64)\nprint('real')\nreturn 42", "SUCCESS", 42),
    _run("message without a parent",
         "publish('stream', {'name': 'stdout', 'text': 'forged'}, parent=[])\nprint('real')\nreturn 42", "SUCCESS", 42),
    _run("message that is no message",
         "get_ipython().kernel.iopub_socket.send_multipart([b'x', b'<IDS|MSG>', b'', b'{', b'{', b'{', b'{'])\n"
         "get_ipython().kernel.iopub_socket.send_multipart([b'x'])\nprint('real')\nreturn 42", "SUCCESS", 42),
    _run("message of odd content", "publish('stream', {'name': 5, 'text': ['a']})\npublish('display_data', {'data': {'text/plain': {}}, 'metadata': 5})\n"
         "print('real')\nreturn 42", "SUCCESS", 42),
]  # fmt: skip

_FRAMES = [
    _run("frame over the cap", "bridge().sendall(struct.pack('>I', 2**32 - 1) + b'x' * 1000)\ntime.sleep(9)", "TOOL_PROTOCOL"),
    _run("frame with a wrong length", "bridge().sendall(struct.pack('>I', 3) + b'{}')\nbridge().sendall(b'}')\ntime.sleep(9)",
         "TOOL_PROTOCOL"),
    _run("frame that never ends", "bridge().sendall(struct.pack('>I', 100_000) + b'{')\ntime.sleep(60)", "TOOL_TIMEOUT",
         timeout_s=1, within_s=20),
    _run("frame of bad JSON", "bridge().sendall(frame(b'{not json'))\ntime.sleep(9)", "TOOL_PROTOCOL"),
    _run("frame of deep JSON", "bridge().sendall(call(1, args={}).replace(b'{}', b'[' * 0) and "
         "frame(b'{\"type\":\"rpc_call\",\"id\":1,\"server\":\"host\",\"tool\":\"t\",\"args\":' + b'[' * 100000 + b']' * 100000 + b'}'))\n"
         "time.sleep(9)", "TOOL_PROTOCOL"),
    _run("frame of an unknown kind", "bridge().sendall(frame({'type': 'init'}))\ntime.sleep(9)", "TOOL_PROTOCOL"),
    _run("result for a call never made", "bridge().sendall(frame({'type': 'rpc_result', 'id': 7, 'success': True, 'result': 1}))\n"
         "time.sleep(9)", "TOOL_PROTOCOL"),
    # `stay` answers after all runs, so the first call is open when the second one is read.
    _run("two calls with one id", "bridge().sendall(call(5, tool='stay') * 2)\ntime.sleep(60)", "TOOL_PROTOCOL"),
    _run("call of a server that is not there", "bridge().sendall(call(1, 'nowhere'))\nreturn answer()['error']['code']",
         "SUCCESS", "CALL_REFUSED"),
    _run("call of the log without a grant", "bridge().sendall(call(1, 'healkit', 'history'))\nreturn answer()['error']['code']",
         "SUCCESS", "CALL_REFUSED"),
    _run("call with arguments that are no object",
         "bridge().sendall(call(1, args=[1]))\nreturn answer()['error']['code']", "SUCCESS", "CALL_REFUSED"),
    _run("call of a hidden name", "bridge().sendall(call(1, 'host', '__class__'))\nreturn answer()['success']", "SUCCESS", False),
    _run("second ready", "bridge().sendall(frame({'type': 'ready', 'pid': 1, 'layers': {'seccomp': 'failed'}}))\nreturn 42",
         "SUCCESS", 42),
    _run("second completion", "bridge().sendall(frame({'type': 'execution_complete', 'value': 1}))\n"
         "bridge().sendall(frame({'type': 'execution_complete', 'value': 2}))\ntime.sleep(60)", "SUCCESS", 1, within_s=20),
    _run("completion that claims the host's own verdict", "bridge().sendall(frame({'type': 'execution_complete', 'failure': "
         "{'code': 'VAULT_TAMPERED', 'ename': 'E', 'evalue': 'v', 'traceback': 't'}}))\ntime.sleep(60)", "TOOL_EXCEPTION",
         within_s=20),
    _run("closed bridge", "bridge().shutdown(socket.SHUT_RDWR)\ntime.sleep(60)", "TOOL_PROTOCOL", within_s=20),
    _run("descriptor passed to the host", "socket.send_fds(bridge(), [call(1, 'nowhere')], [0])\nreturn answer()['error']['code']",
         "TOOL_EXCEPTION"),
]  # fmt: skip

_BOMBS = [
    _run("memory bomb", "held = []\nwhile True:\n    held.append(bytearray(1 << 24))", "TOOL_OUT_OF_MEMORY"),
    _run("memory bomb of shared mappings",
         "held = []\nwhile True:\n    held.append(mmap.mmap(-1, 1 << 24))\n    held[-1].write(b'x' * (1 << 24))", "TOOL_EXCEPTION"),
    _run("memory bomb behind pipes", "import fcntl\nheld = 0\ntry:\n    for _ in range(500):\n        reading, writing = os.pipe()\n"
         "        fcntl.fcntl(writing, 1031, 1 << 20)\n        os.set_blocking(writing, False)\n"
         "        held += os.write(writing, b'x' * (1 << 20))\nexcept OSError:\n    pass\nreturn held < 256 << 20", "SUCCESS", True),
    _run("memory bomb behind socket pairs", "held = 0\npairs = []\ntry:\n    while True:\n        pairs.append(socket.socketpair())\n"
         "        for end in pairs[-1]:\n            end.setblocking(False)\n            try:\n"
         "                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 25)\n            except OSError:\n                pass\n"
         "            try:\n                while True:\n                    held += end.send(bytes(1 << 16))\n"
         "            except BlockingIOError:\n                pass\nexcept OSError:\n    pass\nreturn held < 64 << 20", "SUCCESS", True),
    _run("thread bomb", "import _thread\n_thread.stack_size(1 << 20)\nmade = 0\ntry:\n    for _ in range(5000):\n"
         "        _thread.start_new_thread(time.sleep, (60,))\n        made += 1\nexcept RuntimeError:\n    pass\nreturn made < 1000",
         "SUCCESS", True),
    _run("fork bomb", "while True:\n    os.fork()", "TOOL_EXCEPTION"),
    _run("processor bomb", "import _thread\n_thread.stack_size(1 << 18)\nfor _ in range(8):\n    threading.Thread(target=lambda: sum(iter(int, 1)), daemon=True).start()\n"
         "while True:\n    pass", "TOOL_TIMEOUT", timeout_s=1, within_s=20),
    _run("disk bomb", "for n in range(20):\n    with open(str(n), 'wb') as file:\n        for _ in range(4):\n"
         "            file.write(bytes(4 << 20))\ntime.sleep(15)", "TOOL_EXCEPTION", landlock="TOOL_DISK_LIMIT"),
    _run("many-files bomb", "for n in range(21_000):\n    open(str(n), 'w').close()\ntime.sleep(15)", "TOOL_EXCEPTION",
         landlock="TOOL_DISK_LIMIT"),
    _run("disk bomb of files without a name", "held = []\nfor n in range(8):\n    held.append(open('x', 'wb'))\n    os.unlink('x')\n"
         "    for _ in range(4):\n        held[-1].write(bytes(4 << 20))\n        held[-1].flush()\ntime.sleep(1.5)",
         "TOOL_EXCEPTION", landlock="TOOL_DISK_LIMIT"),
    _run("disk bomb of mapped files without a name", "for n in range(8):\n    file = open('x', 'wb+')\n    os.unlink('x')\n"
         "    for _ in range(4):\n        file.write(bytes(4 << 20))\n    file.flush()\n    ctypes.CDLL(None).mmap(None, 4096, 1, 1, file.fileno(), 0)\n"
         "    file.close()\ntime.sleep(1.5)", "TOOL_EXCEPTION", landlock="TOOL_DISK_LIMIT"),
    _run("print flood", "while True:\n    print('x' * 10_000)", "TOOL_OUTPUT_LIMIT"),
    _run("print flood past Python", "while True:\n    os.write(1, b'x' * 10_000)", "TOOL_OUTPUT_LIMIT"),
    _run("display flood", "from IPython.display import display, HTML\nwhile True:\n    display(HTML('x' * 100_000))", "TOOL_OUTPUT_LIMIT"),
    _run("flood of forged messages", "while True:\n    publish('stream', {'name': 'stdout', 'text': 'x' * 100_000})", "TOOL_OUTPUT_LIMIT"),
    _run("flood behind a message that is none", "publish('stream', {}, key=b'0' * 64)\nwhile True:\n"
         "    publish('stream', {'name': 'stdout', 'text': 'x' * 100_000})", "TOOL_OUTPUT_LIMIT"),
    _run("flood of messages of another execution", "while True:\n"
         "    publish('stream', {'name': 'stdout', 'text': 'x' * 100_000}, parent={'msg_id': 'other'})",
         "TOOL_OUTPUT_LIMIT"),
    _run("flood of the error file", "for fd in range(3, 64):\n    try:\n        name = os.readlink(f'/proc/self/fd/{fd}')\n"
         "    except OSError:\n        continue\n    if name.endswith('stderr.log'):\n        break\n"
         "for _ in range(30):\n    os.write(fd, b'x' * 1_000_000)\ntime.sleep(15)", "TOOL_OUTPUT_LIMIT"),
    _run("huge result", "return 'x' * 20_000_000", "TOOL_RESULT_TOO_LARGE"),
]  # fmt: skip

_SURVIVORS = [
    _run("alarm switched off", "signal.setitimer(signal.ITIMER_REAL, 0)\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
         "while True:\n    pass", "TOOL_TIMEOUT", timeout_s=1, within_s=20),
    _run("every signal ignored or blocked", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True:\n    time.sleep(60)",
         "TOOL_TIMEOUT", timeout_s=1, within_s=20),
    _run("every exception swallowed", "while True:\n    try:\n        while True:\n            time.sleep(60)\n"
         "    except BaseException:\n        pass", "TOOL_TIMEOUT", timeout_s=1, within_s=20),
    _run("stopped by itself", "os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(60)", "TOOL_TIMEOUT", timeout_s=1, within_s=20),
    _run("thread that goes on", "threading.Thread(target=lambda: time.sleep(60)).start()\nreturn 42", "SUCCESS", 42, within_s=20),
    _run("farewell that never ends", "import atexit\natexit.register(lambda: time.sleep(60))\nreturn 42", "SUCCESS", 42, within_s=20),
    _run("last word in a destructor", "class Last:\n    def __del__(self):\n        time.sleep(60)\nsys.healkit_last = Last()\nreturn 42",
         "SUCCESS", 42, within_s=20),
    _run("a session of its own", "try:\n    os.setsid()\nexcept OSError:\n    os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None\n"
        "while True:\n    pass", "TOOL_TIMEOUT", timeout_s=1, within_s=20),
]  # fmt: skip

_REST = [
    _run("a pickle as the result", "class Evil:\n    def __reduce__(self):\n        return os.system, ('true',)\n"
         "    def __repr__(self):\n        return 'shown'\nreturn Evil()", "TOOL_RESULT_UNSUPPORTED"),
    _run("the bytes of a pickle as the result", "return b'cposix\\nsystem\\n(Vtrue\\ntR.'", "SUCCESS",
         {"base64": "Y3Bvc2l4CnN5c3RlbQooVnRydWUKdFIu", "size_bytes": 24}),
    _run("script in outputs", "from IPython.display import display, HTML, Javascript, Markdown, SVG\n"
         "display(HTML('<script>alert(1)</script><img src=x onerror=alert(1)><a href=\"javascript:alert(1)\">x</a>'))\n"
         "display(Javascript('alert(1)'))\ndisplay(Markdown('[x](javascript:alert(1)) <script>alert(1)</script>'))\n"
         "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"></svg>'))\n"
         "display({'application/vnd.jupyter.widget-view+json': {'model_id': 'x'}, 'text/html': '<iframe src=//x></iframe>'}, raw=True)\n"
         "return 42", "SUCCESS", 42),
    _run("system call of another architecture",
         "if os.uname().machine != 'x86_64':\n    os.kill(os.getpid(), signal.SIGSYS)\n"
         "machine_code(bytes.fromhex('b814000000cd80c3'))\nreturn 'ALLOWED'", "TOOL_CRASHED"),
]  # fmt: skip

RUNS: tuple[Run, ...] = (*_FORGED, *_FRAMES, *_BOMBS, *_SURVIVORS, *_REST)
