"""Files, folders, encodings and the network."""

from __future__ import annotations

from healkit.failures.pattern import ExplanationText, FailurePattern

PATTERNS: tuple[FailurePattern, ...] = (
    FailurePattern(
        ("FileNotFoundError",),
        r"No such file or directory: (?P<path>'.*')",
        explanations=(
            ExplanationText(
                "file_near",
                what="There is no file {path}.",
                why="In the same folder is a file whose name is much like it: {near}.",
                hint="Compare the spelling, and what comes after the dot.",
                fix="If {near} was meant, open that.",
                needs="near",
                example=(
                    "import os, tempfile\nfolder = tempfile.mkdtemp()\nwith open(os.path.join(folder, 'sales.csv'), 'w'):\n"
                    "    pass\nopen(os.path.join(folder, 'sale.csv'))"
                ),
            ),
            ExplanationText(
                "file",
                what="There is no file {path} that this code can see.",
                why=(
                    "A name without a folder is looked for in the working directory. A tool sees its own scratch folder and what it "
                    "was granted, nothing else of your disk."
                ),
                hint="What does `os.getcwd()` say, and what lies there?",
                fix="Write the whole path; for a tool, grant it with `%vault grant NAME --read PATH`.",
                example="open('zzyzx/not/there')",
            ),
        ),
    ),
    FailurePattern(
        ("PermissionError",),
        r"(?:\[Errno \d+\] )?(?P<what>.*)",
        explanations=(
            ExplanationText(
                "permission",
                what="The system refused it: {what}.",
                why=(
                    "The file or service exists and is closed to this code. In a worker that is meant: a tool has no network, starts no "
                    "process, and writes to its scratch folder only."
                ),
                hint="Should this tool be allowed to do that?",
                fix="Grant it the path (`%vault grant NAME --write PATH`), or let it call a function of yours (`hk.provide`).",
                example="open('/sys/kernel/zzyzx', 'w')",
            ),
        ),
    ),
    FailurePattern(
        ("IsADirectoryError",),
        r"Is a directory: (?P<path>'.*')",
        explanations=(
            ExplanationText(
                "is_folder",
                what="{path} is a folder, and was to be opened as a file.",
                why="Only a file can be read or written.",
                hint="Is the file's name missing at the end of the path?",
                fix="Add the name; `os.listdir(…)` shows what is in the folder.",
                example="open('/')",
            ),
        ),
    ),
    FailurePattern(
        ("UnicodeDecodeError",),
        r"'(?P<codec>[\w-]+)' codec can't decode byte (?P<byte>0x\w+) in position (?P<position>\d+)",
        explanations=(
            ExplanationText(
                "decode",
                what="The bytes are not {codec} text: byte {byte} at position {position} cannot be.",
                why="The file was written in another encoding, or is no text at all: an image, an archive, a spreadsheet.",
                hint="Which program wrote the file?",
                fix="Try `encoding='cp1252'` or `'latin-1'` for files of older Windows programs; open other files with `'rb'`.",
                example="b'caf\\xe9'.decode('utf-8')",
            ),
        ),
    ),
    FailurePattern(
        ("UnicodeEncodeError",),
        r"'(?P<codec>[\w-]+)' codec can't encode characters? (?P<text>\S+)?",
        explanations=(
            ExplanationText(
                "encode",
                what="The text has a character that {codec} cannot write.",
                why="Older encodings know few characters; `utf-8` knows all.",
                hint="Who is to read the outcome?",
                fix="Write with `encoding='utf-8'`.",
                example="'ż'.encode('ascii')",
            ),
        ),
    ),
    FailurePattern(
        ("ValueError",),
        r"I/O operation on closed file",
        explanations=(
            ExplanationText(
                "closed_file",
                what="The file was used after it had been closed.",
                why="At the end of its `with` block a file is closed.",
                hint="Is the line indented as far as the block?",
                fix="Move it into the block, or read what is needed before the block ends.",
                example="import io\nf = io.StringIO()\nf.close()\nf.read()",
            ),
        ),
    ),
    FailurePattern(
        (
            "ConnectionError",
            "ConnectionRefusedError",
            "URLError",
            "gaierror",
            "ConnectError",
            "TimeoutError",
            "OSError",
        ),
        r"(?P<what>Connection refused|Name or service not known|Temporary failure in name resolution|Network is unreachable|timed out|Max retries)",
        explanations=(
            ExplanationText(
                "no_network",
                what="Nothing could be reached over the network: {what}.",
                why="The address does not answer from here. A tool in a worker has no network at all, whatever the address.",
                hint="Does the same request work in a cell of this notebook?",
                fix="Let a function of yours fetch it and call that from the tool (`hk.provide`).",
                example="import socket\nsocket.create_connection(('127.0.0.1', 1), 5)",
            ),
        ),
    ),
)
