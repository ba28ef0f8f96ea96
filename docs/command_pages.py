"""The pages of the program's commands, made of what the program itself says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

TERM = re.compile(r"^ {2,6}((?:-\w, )?(?:--?[\w-]+|<[^>]+>\S*|\[[A-Z]+\]\S*)(?: <[^>]+>\S*| \[<[^>]+>\])*)(?: {2,}(.*))?$")
"""An argument or an option, with its explanation where that is on the same line."""


def write(program: Path, folder: Path) -> None:
    """Writes a page for each command, and one that lists them."""
    folder.mkdir(parents=True)
    overview = help_of(program)
    listed = re.findall(r"^  ([a-z]+) +(.+)$", overview.split("Commands:\n")[1].split("\n\n")[0], re.M)
    commands = [(name, about) for name, about in listed if name != "help"]
    rows = [f"| [`ocsc {name}`]({name}.md) | {about} |" for name, about in commands]
    contents = ["```{toctree}", ":hidden:", "", *(f"{name} <{name}>" for name, _ in commands), "```"]
    rest = overview[overview.index("\nOptions:\n") + 1 :]
    intro = "What `ocsc --help` says. `ocsc help COMMAND` says what is on the page of a command."
    lines = ["# Commands", "", intro, "", "| command | what it does |", "|---|---|", *rows, "", *body(rest), "", *contents, ""]
    (folder / "index.md").write_text("\n".join(lines), "utf-8")
    for name, _ in commands:
        (folder / f"{name}.md").write_text("\n".join([f"# ocsc {name}", "", *body(help_of(program, name))]) + "\n", "utf-8")


def help_of(program: Path, *command: str) -> str:
    """Returns what the program says of itself, or of a command, in lines of any length."""
    words = ["help", *command] if command else ["--help"]
    environment = {**os.environ, "COLUMNS": "4000"}
    return subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=True).stdout


def body(text: str) -> list[str]:
    """Returns a help text in Markdown: options as a list of definitions, examples as code."""
    lines: list[str] = []
    section = ""
    for line in text.splitlines():
        if line.startswith("Usage: "):
            lines += ["```text", line.removeprefix("Usage: "), "```"]
        elif re.fullmatch(r"[A-Z][a-z ]+:", line):
            section = line[:-1]
            lines += [f"## {section}", ""]
        elif section in ("Arguments", "Options") and (line.startswith("  ") or not line.strip()):
            lines += entry(line)
        elif line.startswith("  "):
            # Code, in one block with what came before.
            if lines[-1] == "```":
                lines.pop()
            else:
                lines.append("```text")
            lines += [line[2:], "```"]
        else:
            section = section if line == "" else ""
            lines += [escaped(line)] if line else ["", ""]
    return lines


def entry(line: str) -> list[str]:
    """Returns a line of a list of arguments or options."""
    term = TERM.match(line)
    if term:
        return ["", f"`{term[1]}`", *([f": {escaped(term[2])}"] if term[2] else [])]
    said = line.strip()
    if not said:
        return [""]
    if line.startswith(" " * 10) and not line.startswith(" " * 11) and not said.startswith(("- ", "Possible", "[")):
        return [f": {escaped(said)}"]
    value = re.fullmatch(r"- ([\w-]+): +(.*)", said)
    if value:
        return [f"  - `{value[1]}`: {escaped(value[2])}"]
    return ["", f"  {escaped(said)}", ""]


def escaped(text: str) -> str:
    """Returns text in which no character has a meaning for Markdown, but for code in backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>\[\]|$#])", r"\\\1", part) for part in parts)
