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
                why="A loop may never end, or there is more to do than there was time for. The line is where it was at that moment.",
                hint="Does the loop's condition ever become false?",
                fix="Mend the loop; or give it more time: `%run_tool NAME --timeout 120`.",
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
                what="The tool used up its processor time: {what}.",
                why="That is time spent calculating, not waiting; several threads use it up together.",
                hint="How does the work grow with the input?",
                fix="Let it do less at once, or grant more: `%vault grant NAME --cpu SECONDS`.",
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
                what="The tool asked for more memory than it may have.",
                why="Something in it grows: a list that is never emptied, or a file that is read whole.",
                hint="What is the largest thing that it holds at once?",
                fix="Work in pieces, or grant more: `%vault grant NAME --memory MB`.",
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
                what="The tool printed or displayed more than it may.",
                why="A `print` in a loop that runs long, or a whole table where its head would do.",
                hint="Who reads all of it?",
                fix="Return the value instead of printing it, or show the beginning only.",
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
                why="Each run has a folder of its own with a limit, and it is thrown away afterwards.",
                hint="Which files are needed after the run?",
                fix="Write less, or grant a folder of yours: `%vault grant NAME --write PATH`.",
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
                what="The tool worked, and its result is too large to be handed back: {what}.",
                why="A result is kept in the log and travels as JSON.",
                hint="Which part of it is needed?",
                fix="Return a summary, or write a file into a folder that the tool is granted.",
            ),
        ),
        kind="limits",
    ),
    FailurePattern(
        ("TOOL_CRASHED",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "crash",
                what="The tool's process died: {what}.",
                why="That does not happen in Python code, but in a library written in C, or when the machine ran out of memory.",
                hint="Which library was called last?",
                fix="Run it again; if it dies again, give the library smaller or cleaner input.",
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
                what="The tool's process ended before the tool had returned.",
                why="`os._exit` ends a process on the spot.",
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
                why="Somebody pressed Stop, or healkit was closed while the tool ran.",
                hint="",
                fix="Run it again.",
            ),
        ),
        no_fix="Somebody stopped the run; there is nothing to mend in that.",
    ),
    FailurePattern(
        ("TOOL_PROTOCOL",),
        "",
        explanations=(
            ExplanationText(
                "protocol",
                what="The tool's process sent something that is not part of the protocol, and nothing of it was used.",
                why="The code wrote to a file descriptor that is not its own.",
                hint="Does it open or duplicate descriptors by number?",
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
                what="The worker was lost through no fault of the tool.",
                why="",
                hint="",
                fix="Run it again; `%healkit doctor` looks at the machine.",
            ),
        ),
        no_fix="The worker was lost through no fault of the code; run the tool again.",
    ),
    FailurePattern(
        ("HOST_DIED",),
        "",
        explanations=(
            ExplanationText(
                "host_died",
                what="The process that had started the run died while the tool ran.",
                why="Its kernel was restarted, or the machine went down. What became of the tool is not known.",
                hint="",
                fix="Run it again.",
            ),
        ),
        no_fix="The process that had started the run died; run the tool again.",
    ),
    FailurePattern(
        ("SQL_ERROR",),
        r"(?P<what>.*)",
        explanations=(
            ExplanationText(
                "sql",
                what="The database refused the statement: {what}.",
                why="A table or column of that name may not be there, or the statement took too long.",
                hint="Which tables and columns are there?",
                fix="Correct the statement and patch the tool.",
            ),
        ),
    ),
    # healkit refused these calls, or could not run them: its own message says why.
    FailurePattern(("CODE_SYNTAX",), kind="syntax"),
    FailurePattern(
        ("ARGUMENTS_INVALID",),
        kind="arguments",
        no_fix="The arguments do not fit the tool's input schema, and the code was not run.",
    ),
    FailurePattern(
        ("ISOLATION_UNAVAILABLE",),
        no_fix="This machine cannot restrict a worker as asked, and the code was not run.",
    ),
    FailurePattern(("WORKER_ERROR",), no_fix="The worker failed, not the code; run the tool again."),
    FailurePattern(
        ("WORKER_START_FAILED",),
        no_fix="No worker could be started; `%healkit doctor`, in a terminal `healkit doctor`, says why.",
    ),
    FailurePattern(("TOOL_NOT_FOUND",), no_fix="There is no such tool."),
    FailurePattern(
        ("VAULT_TAMPERED",),
        no_fix="The stored code was changed outside of healkit; revert to a revision that is whole.",
    ),
)
