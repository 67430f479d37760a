#!/usr/bin/python3
"""messages.py PAGE KIND SOURCE...: prints the messages in the sources that the manual page does not have.

KIND is log, what a daemon logs, without debug messages; fail, the errors of dlockctl and of the configuration's parser; report, what
dlockfs-keeper says; or why, the reasons that a function gives its caller. A format is known if one line of the section DIAGNOSTICS has all of its fixed words, in
that order.
"""
import re
import sys

# A format: texts, and macros beside them that stand for a conversion or a text.
FORMAT = r'((?:[A-Z]\w+\s+)?(?:"(?:[^"\\]|\\.)*"\s*(?:[A-Z]\w+\s*)?)+)'
CALLS = {
    "log": re.compile(r'\blog_(?:lock_)?(?:error|warning|info)\(\s*(?:[^";]*?,\s*)?' + FORMAT),
    "fail": re.compile(r'\bfail\(\s*(?:[^";]*?,\s*)?' + FORMAT),
    "report": re.compile(r'\breport\(\s*' + FORMAT),
    "why": re.compile(r'\bsnprintf\((?:\w+->)?why,\s*(?:[^";]*?,\s*)?' + FORMAT),
}
CONVERSION = re.compile(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")


def formats(path, kind):
    with open(path) as file:
        for call in CALLS[kind].finditer(file.read()):
            pieces = re.findall(r'"((?:[^"\\]|\\.)*)"|([A-Z]\w+)', call.group(1))
            text = "".join("d" if macro.startswith("PRI") else "%s" if macro else piece for piece, macro in pieces)
            yield re.sub(r"\\(.)", r"\1", text)


def known(page):
    with open(page) as file:
        section = file.read().partition("\n.Sh DIAGNOSTICS\n")[2].partition("\n.Sh ")[0]
    return [line.replace("\\&", "") for line in section.splitlines()]


def main():
    page, kind, *sources = sys.argv[1:]
    lines = known(page)
    count = 0
    for path in sources:
        for text in formats(path, kind):
            words = [word.strip() for word in CONVERSION.split(text)]
            pattern = ".*".join(re.escape(word) for word in words if word)
            if not re.search(r"[a-z]{3}", text) or not pattern.strip(":;"):
                continue
            count += 1
            if not any(re.search(pattern, line) for line in lines):
                print(f"{path}: {text}")
    if count < 10:
        print(f"only {count} formats found: are the sources read?")


main()
