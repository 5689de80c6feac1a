"""Calls of the command line, and how they fail."""

from glp_rapids.cli import main


def fails(capsys, *arguments):
    """Run and give the one line that says what is wrong."""
    assert main([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"glp-rapids {arguments[0]}: error: ")
    return error


def cpu(*arguments):
    return main([*map(str, arguments), "--device", "cpu"])
