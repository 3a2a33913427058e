"""Endings of an execution: limits, crashes, lost workers."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("TOOL_TIMEOUT",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "timeout",
                what="The tool was {what}, and was stopped.",
                why=(
                    "A loop may never end, or the work needs more time. The line shown is where the code "
                    "was when it was stopped."
                ),
                hint="Does the loop's condition ever become false?",
                fix="Fix the loop, or allow more time: `%run_tool NAME --timeout 120`.",
                example="while True:\n    pass",
            ),
        ),
        kind="timeout",
    ),
    FailurePattern(
        ("TOOL_CPU_LIMIT",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "cpu",
                what="The tool used up its CPU time: {what}.",
                why="CPU time is time spent computing, not waiting; all threads share it.",
                hint="How does the work grow with the input?",
                fix="Do less work in one run, or grant more: `%vault grant NAME --cpu SECONDS`.",
            ),
        ),
        kind="timeout",
    ),
    FailurePattern(
        ("TOOL_OUT_OF_MEMORY",),
        "",
        explanations=(
            ExplanationText(
                "memory",
                what="The tool needed more memory than its limit allows.",
                why="Something grows: a list that is never emptied, or a file that is read all at once.",
                hint="What is the largest object in memory at one time?",
                fix="Process the data in chunks, or grant more: `%vault grant NAME --memory MB`.",
                example="x = 'x' * (1 << 62)",
            ),
        ),
        kind="memory",
    ),
    FailurePattern(
        ("TOOL_OUTPUT_LIMIT",),
        "",
        explanations=(
            ExplanationText(
                "output",
                what="The tool printed or displayed more than its limit allows.",
                why=(
                    "A common cause is a `print` in a long loop, or a whole table where `.head()` would be "
                    "enough."
                ),
                hint="Do you need all of this output?",
                fix="Return the value instead of printing it, or show only the beginning.",
            ),
        ),
        kind="limits",
    ),
    FailurePattern(
        ("TOOL_DISK_LIMIT",),
        "",
        explanations=(
            ExplanationText(
                "disk",
                what="The tool filled its scratch folder.",
                why="Each run has its own temporary folder with a size limit; it is deleted afterwards.",
                hint="Which files do you need after the run?",
                fix="Write less, or grant a folder of your own: `%vault grant NAME --write PATH`.",
            ),
        ),
        kind="limits",
    ),
    FailurePattern(
        ("TOOL_RESULT_UNSUPPORTED",),
        r"the result (?:is|holds) an? (?P<kind>\S+?)(?: at (?P<place>.+?))?, which",
        explanations=(
            ExplanationText(
                "result_iterator",
                what="The tool ran, but its result is, or holds, a `{kind}`, which makes its items only when it is asked.",
                why="A result is built again in your process, so all of its items must be there.",
                hint="Where is the list that it walks over?",
                fix="Write `list(…)` around it: `return list(result)`.",
                only=(
                    r" an? (?:generator|map|filter|zip|enumerate|reversed|dict_keys|dict_values|dict_items|itertools\.\w+"
                    r"|\w+iterator)\b"
                ),
            ),
            ExplanationText(
                "result_kind",
                what="The tool ran, but a value of type {kind} cannot leave the worker as it is. Its place is {place}.",
                why="A result is built again in your process, and never from a pickle.",
                hint="Which part of it do you need?",
                fix="Return its parts: numbers, text, lists, dicts, arrays or frames.",
            ),
        ),
        kind="limits",
    ),
    FailurePattern(
        ("TOOL_RESULT_UNSUPPORTED",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "result_shape",
                what="The tool ran, but its result cannot leave the worker: {what}.",
                why="A result is built again in your process, and never from a pickle.",
                hint="Which part of it do you need?",
                fix="Return its parts: numbers, text, lists, dicts, arrays or frames.",
            ),
        ),
        kind="limits",
    ),
    FailurePattern(
        ("TOOL_RESULT_TOO_LARGE",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "result_size",
                what="The tool ran, but its result is too large to return: {what}.",
                why="A result has a limit in bytes, and so has the row of the log.",
                hint="Which part of it do you need?",
                fix="Return a summary, or write a file to a folder that the tool may write to.",
            ),
        ),
        kind="limits",
    ),
    FailurePattern(
        ("TOOL_CRASHED",),
        r"in a recursion that is too deep for the stack",
        explanations=(
            ExplanationText(
                "deep_recursion",
                what="A function called itself so often that the process ran out of stack, and crashed.",
                why="A recursion limit above the default lets Python go deeper than its stack allows.",
                hint="For which value should the function return without calling itself?",
                fix="Give the function that base case, and leave `sys.setrecursionlimit` as it is.",
            ),
        ),
        kind="crash",
    ),
    FailurePattern(
        ("INTERNAL_ERROR",),
        "",
        explanations=(
            ExplanationText(
                "internal",
                what="healkit itself failed; neither the tool nor the call is to blame.",
                why="The traceback shows where. Whether the tool did its work is not known.",
                fix="Report it with the traceback; a newer version of healkit may do better.",
            ),
        ),
        kind="limits",
        no_fix="healkit itself failed, not the tool.",
    ),
    FailurePattern(
        ("TOOL_CRASHED",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "crash",
                what="The tool's process crashed: {what}.",
                why=(
                    "Pure Python code rarely causes this. Usually a library written in C crashed, or the "
                    "machine ran out of memory."
                ),
                hint="Which library was called last?",
                fix="Run it again; if it crashes again, give the library smaller or cleaner input.",
            ),
        ),
        kind="crash",
    ),
    FailurePattern(
        ("TOOL_EXITED",),
        "",
        explanations=(
            ExplanationText(
                "exit",
                what="The tool's process ended before the tool returned.",
                why="`os._exit` ends a process immediately.",
                hint="Which line ends the process?",
                fix="Let the tool `return`, or raise an exception.",
            ),
        ),
        kind="crash",
    ),
    FailurePattern(
        ("TOOL_KILLED",),
        "",
        explanations=(
            ExplanationText(
                "stopped",
                what="The run was stopped.",
                why="Stop was pressed, or healkit was closed while the tool ran.",
                hint="",
                fix="Run it again.",
            ),
        ),
        no_fix="The run was stopped; the code needs no fix.",
    ),
    FailurePattern(
        ("TOOL_PROTOCOL",),
        "",
        explanations=(
            ExplanationText(
                "protocol",
                what=(
                    "The tool's process sent data that is not part of the protocol; healkit ignored all of "
                    "it."
                ),
                why="The code wrote to a file descriptor that does not belong to it.",
                hint="Does the code open or duplicate file descriptors by number?",
                fix="Use `open` and `print`.",
            ),
        ),
    ),
    FailurePattern(
        ("WORKER_LOST",),
        "",
        explanations=(
            ExplanationText(
                "lost",
                what="The worker was lost; the tool did not cause this.",
                why="",
                hint="",
                fix="Run it again; `%healkit doctor` checks the machine.",
            ),
        ),
        no_fix="The worker was lost; the code did not cause this. Run the tool again.",
    ),
    FailurePattern(
        ("HOST_DIED",),
        "",
        explanations=(
            ExplanationText(
                "host_died",
                what="The process that started the run died while the tool ran.",
                why=(
                    "Its kernel was restarted, or the machine went down. Whether the tool finished is "
                    "unknown."
                ),
                hint="",
                fix="Run it again.",
            ),
        ),
        no_fix="The process that started the run died; run the tool again.",
    ),
    FailurePattern(
        ("SQL_ERROR",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "sql",
                what="The database rejected the statement: {what}.",
                why="A table or column of that name may not exist, or the statement took too long.",
                hint="Which tables and columns exist?",
                fix="Correct the statement and patch the tool.",
            ),
        ),
    ),
    # healkit refused these calls, or could not run them: its own message says why.
    FailurePattern(("CODE_SYNTAX",), kind="syntax"),
    FailurePattern(
        ("ARGUMENTS_INVALID",),
        kind="arguments",
        no_fix="The arguments do not match the tool's input schema; the code did not run.",
    ),
    FailurePattern(
        ("ISOLATION_UNAVAILABLE",),
        no_fix="This machine does not support the requested isolation; the code did not run.",
    ),
    FailurePattern(("WORKER_ERROR",), no_fix="The worker failed, not the code; run the tool again."),
    FailurePattern(
        ("WORKER_START_FAILED",),
        no_fix=(
            "No worker could be started; `%healkit doctor`, or `healkit doctor` in a terminal, shows why."
        ),
    ),
    FailurePattern(
        ("WORKER_NOT_RESTRICTED",),
        no_fix=(
            "A worker lacked a layer of its isolation tier, so the code did not run; `healkit doctor` "
            "tests each layer."
        ),
    ),
    FailurePattern(("TOOL_NOT_FOUND",), no_fix="There is no such tool."),
    FailurePattern(("TOOL_REMOVED",), no_fix="The tool was removed from the vault; restore it to run it."),
    FailurePattern(
        ("VAULT_TAMPERED",),
        no_fix="The stored code was changed outside of healkit; revert to an intact revision.",
    ),
)
