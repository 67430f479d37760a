#!/usr/bin/python3
"""documents.py TREE DLOCKFS DLOCKCTL PAGE...: prints what the pages show and what does not exist, a line each.

What it looks at: links with their #anchors; options and commands of dlockfs and dlockctl; keys of the configuration, and blocks of it,
which dlockfs --check reads; paths and tests of the tree. TREE is the source tree, or - to look at nothing but links. A piece of code
that begins with a dash is an option of dlockfs or dlockctl, unless FOREIGN_OPTIONS has it.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)", re.IGNORECASE)
KEY_VALUE = re.compile(r"^#?([a-z_]+) = ")
# Names with an underscore that are of other programs, of the kernel, or of files that dlockfs only uses.
FOREIGN = {"user_allow_other", "extra_lock_patterns", "default_permissions", "protected_regular", "max_request_timeout",
           "default_request_timeout", "recover_lost_locks", "retry_count", "retry_delay", "rule_files", "zkr_lock_lock", "memfd_create", "mutt_dotlock",
           "plain_only"}
# Options of other programs that stand alone.
FOREIGN_OPTIONS = {"--bind", "--build-arg", "--network", "--pid", "--ttl", "--uidmap", "--use-pid", "--userns", "-child-exit-code", "-try"}
MOUNT_OPTIONS = {"nonempty", "noexec", "nosuid", "nodev", "auto_unmount", "config"}


def without_fences(text):
    """The text with every fenced block replaced by as many empty lines."""
    return FENCE.sub(lambda match: "\n" * match.group(0).count("\n"), text)


def anchor(heading):
    """What the title of a section is called in a link."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", "")).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(path):
    with open(path, encoding="utf-8") as file:
        text = without_fences(file.read())
    return {anchor(match.group(1)) for match in re.finditer(r"^#+ (.+)$", text, re.MULTILINE)}


def line_at(text, start):
    return text.count("\n", 0, start) + 1


def check_links(path, text):
    """The text is without its fences."""
    for match in LINK.finditer(text):
        target, _, part = match.group(1).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(there):
            yield line_at(text, match.start()), f"there is no {target}"
        elif part and part not in anchors(there):
            yield line_at(text, match.start()), f"{os.path.basename(there)} has no section #{part}"


class Programs:
    """What --help of both lists."""

    def __init__(self, tree, dlockfs, dlockctl):
        self.tree = tree
        self.dlockfs = dlockfs
        text = self.help(dlockfs)
        self.options = {"dlockfs": set(OPTION.findall(text.partition("\nKeys ")[0]))}
        keys = text.partition("\nKeys ")[2]
        self.keys = set(re.findall(r"^ *(?:mount|store|locks)[\t ]+([a-z_]+)\b", keys, re.MULTILINE))
        self.keys |= set(re.findall(r"^ {2}([a-z_]+)\b", keys, re.MULTILINE))
        text = self.help(dlockctl)
        self.commands = re.findall(r"^  ([a-z]+)(?: .*)?$", text.partition("\nOptions ")[0], re.MULTILINE)
        everywhere = set(OPTION.findall(text[text.index("\nOptions "):]))
        self.options["dlockctl"] = everywhere
        for command in self.commands:
            self.options["dlockctl " + command] = everywhere | set(OPTION.findall(self.help(dlockctl, command)))
        self.all_options = set().union(*self.options.values())
        assert {"idle", "recipe"} <= self.keys and "ls" in self.commands and "--store" in self.all_options
        self.words = set()
        for folder in ("src", "fs"):
            for where, _, names in os.walk(os.path.join(tree, folder)):
                for name in names:
                    with open(os.path.join(where, name), encoding="utf-8") as file:
                        self.words |= set(re.findall(r"\w+_\w+", file.read()))

    @staticmethod
    def help(*command):
        return subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout

    def check_call(self, program, words):
        """What is wrong with the words that follow the name of dlockfs or dlockctl."""
        known = self.options[program]
        if program == "dlockctl":
            command = next((word for word in words if not word.startswith("-")), None)
            if command in self.commands:
                known = self.options["dlockctl " + command]
            elif command is not None and re.fullmatch("[a-z]+", command):
                yield f"dlockctl has no command {command}"
                return
        follows = None
        for word in words:
            if word in ("--", "|", ";", "&&", ">", ")"):
                break
            if follows == "-o":
                yield from self.check_mount_options(word)
            option = word.partition("=")[0]
            if OPTION.fullmatch(option) and option not in known:
                yield f"{program} has no option {option}"
            follows = word

    def check_mount_options(self, text):
        for option in text.split(","):
            key, equals, _ = option.partition("=")
            if equals and key not in self.keys | MOUNT_OPTIONS and key.islower() and key != "key":
                yield f"there is no key {key}"

    def check_line(self, line):
        """A line of shell, or a piece of code."""
        for match in re.finditer(r"(?:^|[\s(;|/])(dlockfs|dlockctl)(?= [^:])", line):
            rest = re.split(r"[;|>&#)]|\s\s", line[match.end(1):])[0]
            before = line[:match.start(1)].split()
            if match.group(1) == "dlockfs" and (not rest.strip().startswith("-") or before and before[-1].startswith("-")):
                continue # the service of that name, or a name that an option gives
            yield from self.check_call(match.group(1), rest.replace("'", "").split())

    def check_code(self, code):
        code = code.replace("\n", " ")
        yield from self.check_line(code)
        if re.match("--?[a-z]", code, re.IGNORECASE):
            word = re.split("[ =]", code)[0]
            if word not in self.all_options | FOREIGN_OPTIONS:
                yield f"neither dlockfs nor dlockctl has an option {word}"
            if word == "-o":
                yield from self.check_mount_options(code[2:].strip())
        match = KEY_VALUE.match(code)
        if match and match.group(1) not in self.keys:
            yield f"there is no key {match.group(1)}"
        if re.fullmatch("[a-z]+(_[a-z]+)+", code) and code not in self.keys | self.words | FOREIGN:
            yield f"there is no {code}"
        match = re.match(r"(?:[A-Z_]+=\S+ )*((?:src|fs|etc|tests|build|\.ci)/[\w./-]*)", code)
        if match and not re.search("[A-Z]{3}", match.group(1)) and not match.group(1).startswith("build"):
            path = match.group(1)
            if not os.path.exists(os.path.join(self.tree, path)):
                yield f"there is no {path}"
            elif path == "tests/run.sh":
                for name in code[match.end():].split():
                    yield from self.check_test(name)
            elif path.endswith(".sh"):
                with open(os.path.join(self.tree, path), encoding="utf-8") as file:
                    script = file.read()
                for option in re.findall(r" (--[a-z]+)", code[match.end():]):
                    if option not in script:
                        yield f"{path} has no {option}"

    def check_test(self, name):
        if name.startswith("--"):
            with open(os.path.join(self.tree, "tests/run.sh"), encoding="utf-8") as file:
                if f"{name})" not in file.read():
                    yield f"tests/run.sh has no {name}"
        elif not re.search("[A-Z]", name) and name not in ("unit", "sim") \
                and not glob.glob(os.path.join(self.tree, f"tests/system/**/test-{name}.sh"), recursive=True) \
                and not (name.endswith("/") and os.path.isdir(os.path.join(self.tree, f"tests/system/{name}"))):
            yield f"there is no test {name}"

    def check_ini(self, block):
        wrong = list(self.check_ini_names(block))
        if not wrong and "/etc/dlockfs" not in block: # else it names files that may not be there
            with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
                file.write(block)
                file.flush()
                command = [self.dlockfs, "--config", file.name, "--check", "/run/dlocks"]
                result = subprocess.run(command, check=False, capture_output=True, text=True)
                if result.returncode != 0 and "built without etcd" not in result.stderr: # which is no fault of the page
                    wrong.append(result.stderr.strip().replace(file.name, "the configuration"))
        return wrong

    def check_ini_names(self, block):
        for line in block.splitlines():
            key, equals, _ = line.partition("=")
            section = re.match(r'\[(\w+)(?: "[^"]+")?\]$', line)
            if line.startswith("[") and (section is None or section.group(1) not in ("mount", "store", "locks")):
                yield f"there is no section {line}"
            if equals and not line.startswith("#") and key.strip() not in self.keys:
                yield f"there is no key {key.strip()}"

    def check(self, text, plain):
        """plain: the text without its fences."""
        for match in FENCE.finditer(text):
            if match.group(1) == "ini":
                found = self.check_ini(match.group(2))
            else:
                lines = match.group(2).replace("\\\n", " ").splitlines()
                found = (what for line in lines if match.group(1) in ("", "sh") for what in self.check_line(line))
            for what in found:
                yield line_at(text, match.start()), what
        for match in CODE.finditer(plain):
            for what in self.check_code(match.group(1)):
                yield line_at(plain, match.start()), what


def main():
    tree, dlockfs, dlockctl, *pages = sys.argv[1:]
    programs = Programs(tree, dlockfs, dlockctl) if tree != "-" else None
    for path in pages:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        plain = without_fences(text)
        found = list(check_links(path, plain))
        if programs:
            found += programs.check(text, plain)
        for line, what in found:
            print(f"{os.path.basename(path)}:{line}: {what}")


main()
