"""The command line: ``glp-rapids demo | label-propagation | bfs | sssp | fraud | ...``.

One subcommand a module, each with ``add_options(parser)`` and ``run(options)``; a module imports
what it works with only when it runs, so that ``--help`` is there at once. What goes wrong with the
input or a file is said in one line on stderr, with exit code 2; ``--traceback`` shows where it
happened. A file of results is there as a whole or not at all, whatever ends the process.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence

from glp_rapids import __version__
from glp_rapids.frames.streams import Terminated

COMMANDS = {
    "demo": "make a million transactions with planted fraud rings, and find the rings",
    "label-propagation": "find communities in a file of edges",
    "communities": "find communities of high modularity in a file of edges, as Leiden does",
    "measure": "measure core numbers, triangles, trussness or betweenness in a file of edges",
    "diversity": "find who has friends in many separate circles, in a file of edges",
    "estimate": "say how much memory a run on a file of edges would take, way by way",
    "bfs": "find how many edges everything is from a start, in a file of edges",
    "sssp": "find shortest paths from a start, in a file of edges with lengths",
    "compress": "write a graph to a file in a few bits an edge, and say where they go",
    "fraud": "find suspicious clusters in a file of transactions, given a blacklist",
    "monitor": "replay transactions tick by tick, and say what becomes of suspicious clusters",
    "warmup": "compile before the first call, into the cache, as for a container's image",
    "doctor": "say which GPU and libraries are here, what is wrong with them, and the mend",
    "bench": "measure quality and speed, other libraries beside this one",
}
BAD_INPUT, CLOSED_PIPE = 2, 141  # the latter as shells have it of who ends by that signal
NEAR = 0.82  # as alike, to 1, is an option that may have been meant; --start is not for --target
# What the library advises for a frame, and what is the same in the file that the frame is of.
IN_A_FILE = {
    r" with dropna\b": "",
    r"\bturn them into seconds with \.dt\.total_seconds\(\)": "write them as seconds",
    r"\bsubtract a date from them, and turn that into .*\.dt\.total_seconds\(\)":
        "write numbers in their place",
    r"\bcast (?:them )?with astype\('float64'\)": "write a number in each row",
    r"\bcast them, as with astype\('int64'\)": "write them as integers",
    r"\bcast them, as with astype\('str'\)": "write them as texts",
    r"\bcast one of them with astype\b": "write both as integers, or both as texts",
    r"pass the frame of pandas\.read_csv\(\.\.\., sep=','\)": "name it *.csv",
    r"pass the frame of pandas\.read_csv\(\.\.\., sep='\\t'\)": "name it *.tsv",
    r"pass the frame of pandas\.read_csv\(\.\.\., sep=' '\)": "name it *.txt",
    r"pass the frame of pandas\.read_csv\(\.\.\., sep=.*?\)": "save it with commas",
    r"; pass time_unit='(\w+)' \(or ": r"; give --time-unit \1 (or ",
    r", let the graph lie in a mapped file \(CompressedGraph\.open\), which takes none":
        ", or let the graph lie in a file that `glp-rapids compress` wrote, which is mapped",
    r"make dates of them by pandas\.to_datetime\(.*\)": "write dates such as 2026-01-31",
    r"save to a new folder, or open that one":
        "name a new --folder, or go on from it by fraud.Monitor.open",
    r" \(of the command line; as a frame: pandas\.read_csv\(.*?\)\)": "",
}

DESCRIPTION = (
    "Label propagation and structural diversity on tables of edges: exact, repeatable, on GPUs "
    "and on CPUs."
)
EPILOG = """\
start here:
  glp-rapids demo                          # finds fraud in made-up transactions, in seconds
  glp-rapids doctor                        # is everything installed, is the GPU used?

then with your data (a GPU is used where there is one):
  glp-rapids label-propagation edges.csv --source from --destination to --output communities.csv
  glp-rapids diversity friends.csv --k 4 --model truss --top 100 --output diverse.csv
  glp-rapids compress edges.csv graph.glp   # read graph.glp instead of edges.csv from then on
  glp-rapids fraud transactions.parquet --seeds blacklist.txt --days 30 --output members.csv
  glp-rapids monitor transactions.parquet --seeds blacklist.txt --days 30 --every 6h

`glp-rapids COMMAND --help` has more examples.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What stands after ``glp-rapids``; None: that of the process.

    Returns
    -------
    int
        The exit code: 0, or 2 if the input is not as it must be or the output cannot be written,
        130 after Ctrl-C, 141 where who reads stdout goes before the end, as ``head``: files of
        results may be missing then; 143 after SIGTERM. ``doctor`` returns 1 if this library cannot
        run here.

    Examples
    --------
    >>> from glp_rapids.cli import main
    >>> main(["doctor", "--json"])  # doctest: +SKIP
    0
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    traceback = "--traceback" in arguments
    words = [word for word in arguments if word != "--traceback"]
    name = " ".join(["glp-rapids", *(word for word in words[:1] if word in COMMANDS)])
    if sys.stderr is None:  # closed, and what is printed there would go to stdout
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for as long as there is a process)
    options = argparse.Namespace()
    try:
        with contextlib.nullcontext() if traceback else _warnings_in_a_line():
            code = _dispatch(words, options)
        _flush_stdout()
        return code
    except (ValueError, TypeError, OSError, ImportError, OverflowError, MemoryError) as error:
        _drop_what_stdout_refused()
        if isinstance(error, BrokenPipeError):  # the reader of a pipe, `head` say, has had enough
            return CLOSED_PIPE
        if traceback:
            raise
        print(f"{name}: error: {_said(error, options)}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except Terminated as end:
        print(f"{name}: terminated", file=sys.stderr)
        return 128 + end.args[0]


@contextlib.contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Print warnings without the line of code; who records them, or makes them errors, still may.

    That line would be of this package, which says nothing to who typed a command.
    """

    def in_a_line(message: Warning | str, *_: object, **__: object) -> str:
        return f"warning: {' '.join(str(message).split())}\n"

    usual, warnings.formatwarning = warnings.formatwarning, in_a_line
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _said(error: Exception, options: argparse.Namespace) -> str:
    """Return what an error says, on one line, the file first, and options by their names."""
    text = str(error)
    if isinstance(error, ValueError | TypeError | MemoryError) and "parser" in options:
        text = _of_a_file(_with_options(text, options.parser))
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, MemoryError):
        text = f"there is too little memory{text and f' ({text})'}"
    return " ".join(text.split()) or type(error).__name__


def _with_options(text: str, parser: argparse.ArgumentParser) -> str:
    """Name an option where the library names the argument: the `dest` of the one is the other."""
    named = {one.dest: one.option_strings[0] for one in parser._actions if one.option_strings}
    argument = r"(?:^|(?<=: ))(\w+)(?==| must )|(?<=has no option )'(\w+)'"
    text = re.sub(argument, lambda found: named.get(found[1] or found[2], found[0]), text)
    text = re.sub(r"(?<=raise )(\w+)", lambda found: named.get(found[0], found[0]), text)
    left_out = r"(?<=leave )(\w+)(?: out|=None)"
    return re.sub(left_out, lambda one: f"{named[one[1]]} out" if one[1] in named else one[0], text)


def _of_a_file(text: str) -> str:
    """Advise what can be done to a file where the library advises a method of a frame."""
    for advice, same in IN_A_FILE.items():
        text = re.sub(advice, same, text)
    return text


def _flush_stdout() -> None:
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, "stdout") from error


def _drop_what_stdout_refused() -> None:
    """Drop what a full disk or a closed pipe did not take, lest Python try again at its end."""
    try:
        _flush_stdout()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: list[str], options: argparse.Namespace) -> int:
    """Run a command; ``options`` receives what its arguments say, and the parser of them."""
    if arguments[:1] == ["bench"]:  # its options import what it measures
        from glp_rapids import bench

        bench.main(arguments[1:])
        return 0
    parser, subparsers = _parsers()
    command = next((word for word in arguments if word in COMMANDS), None)
    if command is not None:
        module = importlib.import_module(f"glp_rapids.cli.{command.replace('-', '_')}")
        module.add_options(subparsers[command])
        _, unknown = parser.parse_known_args(arguments, options)
        if unknown:  # with the usage of the command, not of all
            subparsers[command].error(_unknown(subparsers[command], unknown))
        options.parser = subparsers[command]
        return module.run(options) or 0
    parser.parse_args(arguments)  # --help, --version, or an unknown command: does not come back
    parser.print_help()
    return BAD_INPUT


def _unknown(parser: argparse.ArgumentParser, words: list[str]) -> str:
    """Say which words are not understood, and which option may have been meant."""
    from glp_rapids.common.checks import meant_by  # imports NumPy, which no help needs

    known = [name for action in parser._actions for name in action.option_strings]
    bare = [name.lstrip("-") for name in known]  # dashes, which all have, make none alike
    meant = None
    if words[0].startswith("-"):
        meant = meant_by(words[0].partition("=")[0].lstrip("-"), bare, alike=NEAR)
    hint = f"; did you mean {known[bare.index(meant)]}?" if meant else ""
    return f"unrecognized arguments: {' '.join(words)}{hint}"


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="glp-rapids",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"glp-rapids {__version__}")
    parser.add_argument(
        "--traceback", action="store_true", help="on an error, show where it happened"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    subparsers = {
        name: commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for name, summary in COMMANDS.items()
    }
    return parser, subparsers
