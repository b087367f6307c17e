"""`arco completion`: a script that lets a shell complete commands, options, recipes and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from composer.cli.arguments import Parser

SHELLS = ("bash", "zsh", "fish", "powershell")


def declare(parser: Parser, name: str) -> None:
    """Declare the shell."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="Shell to print the script for")
    parser.examples = [
        ("Enable it in this Bash session; in all sessions, with this line in ~/.bashrc", 'eval "$(arco completion bash)"'),
        ("Install for Zsh, in a folder on $fpath", "arco completion zsh > ~/.zfunc/_arco"),
        ("Install for Fish", "arco completion fish > ~/.config/fish/completions/arco.fish"),
        ("Enable it in this PowerShell session", "arco completion powershell | Out-String | Invoke-Expression"),
    ]
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    print(shtab.complete(whole_parser(), shell=arguments.shell), end="")
    return 0


def whole_parser() -> argparse.ArgumentParser:
    """Return a parser of all commands, each argument with its completer."""
    from composer.cli import COMMANDS
    from composer.cli import declare as declare_command

    whole = argparse.ArgumentParser(prog="arco")
    whole.add_argument("--version", action="store_true", help="Show the version")
    commands = whole.add_subparsers(metavar="COMMAND", parser_class=Parser)
    completers = _completers()
    for name, (_, does) in COMMANDS.items():
        parser = declare_command(commands.add_parser(name, help=does), name)
        for action in parser._actions:
            if not action.choices and action.metavar in completers:
                action.complete = completers[action.metavar]  # type: ignore[attr-defined]  # where shtab looks for it
    commands.add_parser("help", help="Show the help of a command").add_argument("command", choices=tuple(COMMANDS))
    return whole


def _completers() -> Mapping[object, Mapping[str, object]]:
    """Return the completers of values by metavar."""
    import shtab

    from blocks.core import standard
    from composer.cli.reference import sections
    from composer.package_data import errors_page
    from composer.recipe import zoo_names

    recipes = _words("recipes", zoo_names(), files=shtab.glob("*.yaml", "*.yml"))
    return {
        "RECIPE": recipes,
        "OTHER": recipes,
        "RECIPE|REVISION": recipes,
        "RUN": shtab.DIRECTORY,
        "DIR": shtab.FILE,
        "FOLDER": shtab.DIRECTORY,
        "FILE": shtab.FILE,
        "FILE.py": shtab.glob("*.py"),
        "CODE": _words("codes", sections(errors_page().read_text(encoding="utf-8"))),
        "BLOCK": _words("blocks", standard()),
        "DEVICE": _words("devices", ("cpu", "cuda")),
    }


def _words(name: str, words: Iterable[str], files: Mapping[str, Any] | None = None) -> Mapping[str, object]:
    """Return a completer of words and, optionally, files, as shtab takes it: for each shell, a function and its definition."""
    function, listed = f"_arco_{name}", " ".join(words)
    quoted = ", ".join(f"'{word}'" for word in listed.split())
    bash = [f'compgen -W "{listed}" -- "$1"']
    zsh = [f"'{name}:{name}:({listed})'"]
    fish = [f"string split ' ' -- '{listed}'"]
    powershell = [f'@({quoted}) | Where-Object {{ $_ -like "$WordToComplete*" }}']
    preamble: Mapping[str, str] = {}
    if files is not None:
        preamble = files["preamble"]
        bash.append(f'{files["bash"]} "$1"')
        zsh.append("'files:file:_files -g \"(*.yaml|*.yml)\"'")
        fish.append(files["fish"].strip("()"))
        powershell.append(f"{files['powershell']} $WordToComplete")
    defined = {
        "bash": f"{function}() {{\n  {_lines(bash)}\n}}",
        "zsh": f"{function}() {{\n  _alternative {' '.join(zsh)}\n}}",
        "fish": f"function {function}\n  {_lines(fish)}\nend",
        "powershell": f"function {function} {{\n  param([string]$WordToComplete)\n  {_lines(powershell)}\n}}",
    }
    return {
        **{shell: f"({function})" if shell == "fish" else function for shell in SHELLS},
        "preamble": {shell: f"{preamble.get(shell, '')}\n{text}\n" for shell, text in defined.items()},
    }


def _lines(commands: Iterable[str]) -> str:
    return "\n  ".join(commands)
