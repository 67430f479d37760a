"""Renders the configuration of the Ansible role as Ansible does: ansible_role.py etc/ansible FOLDER, with dlockfs --help as its input.

Writes FOLDER/defaults.ini (of the role's defaults), example.ini (of example.yml) and keys.ini (with all keys of --help, at their defaults,
in each section where they may stand). Secrets and certificates are written into FOLDER, which stands for /etc/dlockfs.
"""
import os
import re
import sys

import jinja2
import yaml

ansible, folder = sys.argv[1:]
role = ansible + "/roles/dlockfs"


def read(name):
    with open(name) as file:
        return yaml.safe_load(file)


# As Ansible's module template has it: blocks end with their line, and what is not defined is an error.
environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
                                 loader=jinja2.FileSystemLoader(role + "/templates"))
defaults = read(role + "/defaults/main.yml")


def write(name, text, mode):
    descriptor = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def render(name, variables):
    unknown = set(variables) - set(defaults)
    if unknown:
        sys.exit(f"{name}: the role has no {', '.join(sorted(unknown))}")
    variables = {**defaults, **variables}
    for secrets, mode in ("dlockfs_secrets", 0o600), ("dlockfs_certificates", 0o644):
        for file in variables[secrets]:
            write(file, "text\n", mode)
    text = environment.get_template("dlockfs.ini.j2").render(variables, ansible_managed="by Ansible")
    write(name + ".ini", text, 0o644)


render("defaults", {})
for use in read(ansible + "/example.yml")[0]["roles"]:
    render("example", use["vars"])
with open(folder + "/example.ini") as file:
    example = file.read()
write("example-here.ini", example.replace("/etc/dlockfs/", folder + "/"), 0o644)

sections = {"mount": {}, "store": {}, "locks": {}}
for line in sys.stdin:
    if match := re.fullmatch(r"\[(\w+)\]\n", line):
        keys = sections[match[1]]
    elif match := re.match(r"  (\w+) = (\S*)", line):
        value = match[2] if not line.split(" = ")[1].startswith(" ") else ""
        keys[match[1]] = {"yes": True, "no": False}.get(value, int(value) if re.fullmatch(r"[1-9]\d*|0", value) else value)
url = sections["store"].pop("url")
session_timeout = sections["store"].pop("session_timeout")
sections["mount"].pop("directories")
render("keys", {
    "dlockfs_url": url, "dlockfs_session_timeout": session_timeout, "dlockfs_directories": ["one", "one/two"],
    "dlockfs_mount": sections["mount"], "dlockfs_store": sections["store"], "dlockfs_locks": sections["locks"],
    "dlockfs_stores": {"one": {"url": "redis://localhost/one", **sections["store"]}, "two": {"url": "etcd://localhost/two"}},
    "dlockfs_patterns": {"one/*": sections["locks"]},
})
