#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Fetches Debian's static busybox for arm64, which the shell tests run in the
# guest, and for this machine, which they compare it with:
#
#   fetch-busybox.sh [DIRECTORY]
#
# Both end in DIRECTORY (default: ~/.cache/shootdown) as busybox-arm64 and
# busybox-host. The packages come from the machine's own apt sources, by lists
# that live in a temporary directory: nothing is installed and dpkg learns of no
# foreign architecture. Does nothing where the files are there already. Exit
# status 1 when they cannot be had.
set -euo pipefail

dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/shootdown}

if [ -x "$dir/busybox-arm64" ] && [ -x "$dir/busybox-host" ]; then
    exit 0
fi
for tool in apt-get dpkg dpkg-deb; do
    command -v "$tool" >/dev/null || {
        echo "fetch-busybox: no $tool: put static busybox programs into" \
            "$dir by hand" >&2
        exit 1
    }
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# $1: architecture, $2: name of the result
fetch() {
    local arch=$1 options deb
    mkdir -p "$tmp/$arch/lists/partial" "$tmp/$arch/archives/partial"
    : >"$tmp/$arch/status"
    options=(-q -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
        -o "Dir::State::Lists=$tmp/$arch/lists"
        -o "Dir::State::status=$tmp/$arch/status"
        -o "Dir::Cache=$tmp/$arch" -o "Acquire::http::Timeout=20"
        -o "Acquire::https::Timeout=20" -o "APT::Sandbox::User=root")
    if ! (cd "$tmp/$arch" && apt-get "${options[@]}" update &&
        apt-get "${options[@]}" download busybox-static) \
        >"$tmp/log" 2>&1; then
        grep -E '^[EW]:' "$tmp/log" | head -n 5 >&2
    fi
    deb=$(find "$tmp/$arch" -maxdepth 1 -name 'busybox-static_*.deb' | head -n 1)
    if [ -z "$deb" ]; then
        echo "fetch-busybox: apt has no busybox-static for $arch" >&2
        exit 1
    fi
    dpkg-deb -x "$deb" "$tmp/$arch/x"
    mkdir -p "$dir"
    install -m 755 "$(find "$tmp/$arch/x" -type f -path '*/bin/busybox' -print -quit)" \
        "$dir/$2"
}

fetch arm64 busybox-arm64
fetch "$(dpkg --print-architecture)" busybox-host
