#!/bin/sh
# Run by "meson install": puts the example where the program looks for its configuration, unless there is one already.
set -eu

config=${DESTDIR:-}$1/dlockfs.ini
if [ ! -e "$config" ]; then
    mkdir -p "${config%/*}"
    cp "$MESON_SOURCE_ROOT/etc/dlockfs.ini" "$config"
    chmod 644 "$config"
fi
