#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what shootdown needs to build and test on Debian 12 or 13, and
# nothing that is there already. Called by ./quickstart and ./check; does
# nothing, and needs no root, where all is present.
#
# --fuzz, which ./check gives, adds the fuzzers: clang with libFuzzer, and AFL++
# (480 MB on a bare system). What cannot be had of these is only said: the tests
# that need it are skipped.
#
# Unicorn is the one thing those releases have too old a version of. It comes
# from a newer suite on the mirror the machine uses already, with a pin that
# lets only libunicorn* come from there. Two files are written for that:
#   /etc/apt/sources.list.d/shootdown-unicorn.sources
#   /etc/apt/preferences.d/shootdown-unicorn
# Remove both to undo it.
set -euo pipefail

readonly unicorn_min=2.1.2
readonly newer_suite=forky
readonly source_file=/etc/apt/sources.list.d/shootdown-unicorn.sources
readonly pin_file=/etc/apt/preferences.d/shootdown-unicorn

build_packages=(
    gcc libc6-dev meson ninja-build pkgconf python3
    libglib2.0-dev libuv1-dev libcapstone-dev libfdt-dev libelf-dev libyajl-dev
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross cpio
)
test_packages=(check qemu-system-arm qemu-user device-tree-compiler)
fuzz_packages=(clang libclang-rt-dev afl++)

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 2; }

# run as root; the words are printed when that is not possible
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -- "$@"
    else
        die "needs root for: $*
setup: run it as root once, or install sudo"
    fi
}

apt_get() {
    # A source that does not answer must cost seconds, not minutes.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q \
        -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
        -o DPkg::Lock::Timeout=120 "$@"
}

# Other people's sources may be unreachable or badly signed, which is not our
# business: what counts is whether the packages can be had afterwards.
apt_update() {
    say "updating the package lists"
    if ! apt_get update >"$tmp/update.log" 2>&1; then
        say "apt-get update complained, going on:"
        grep -E '^[EW]:' "$tmp/update.log" | head -n 5 | sed 's/^/setup:   /'
    fi
}

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

has_unicorn() {
    command -v pkg-config >/dev/null &&
        pkg-config --atleast-version=$unicorn_min unicorn 2>/dev/null
}

# the version apt would install, or nothing
candidate_of() {
    apt-cache policy "$1" 2>/dev/null |
        awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

candidate_is_new_enough() {
    local have
    have=$(candidate_of libunicorn-dev)
    [ -n "$have" ] && dpkg --compare-versions "$have" ge "$unicorn_min"
}

# Prints one deb822 stanza head (URIs and the trust options) per apt source in
# the directory $1 that carries the suite $2, separated by empty lines. Reads
# both formats. Sources whose path ends in /debian come first: a third party's may
# use the same suite name.
own_mirrors() {
    local apt_dir=$1 suite=$2 file
    for file in "$apt_dir"/sources.list.d/*.sources; do
        if [ ! -f "$file" ] || [ "$file" = "$source_file" ]; then
            continue
        fi
        awk -v suite="$suite" -f "$tmp/deb822.awk" "$file"
    done >"$tmp/mirrors"
    for file in "$apt_dir"/sources.list "$apt_dir"/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        awk -v suite="$suite" -f "$tmp/oneline.awk" "$file"
    done >>"$tmp/mirrors"
    awk 'BEGIN { RS = ""; ORS = "\n\n" }
        /^URIs: [^\n]*\/debian\/?\n/ || /^URIs: [^\n]*\/debian\/?$/ {
            print; next }
        { rest[++n] = $0 }
        END { for (i = 1; i <= n; i++) print rest[i] }' "$tmp/mirrors"
}

write_parsers() {
    cat >"$tmp/deb822.awk" <<'AWK'
# One stanza ends at an empty line; a field may go on over indented lines.
function flush_stanza(   i, n, word, found) {
    n = split(field["suites"], word, " ")
    for (i = 1; i <= n; i++) {
        if (word[i] == suite) { found = 1 }
    }
    if (found && (" " field["types"] " ") ~ / deb / &&
        (" " field["components"] " ") ~ / main / &&
        field["enabled"] !~ /^(no|false|off|0)$/ &&
        field["uris"] !~ /^cdrom:/ && field["uris"] != "") {
        split(field["uris"], word, " ")
        print "URIs: " word[1]
        if (field["signed-by"] != "") { print "Signed-By: " field["signed-by"] }
        if (field["trusted"] != "") { print "Trusted: " field["trusted"] }
        if (field["check-valid-until"] != "") {
            print "Check-Valid-Until: " field["check-valid-until"]
        }
        print ""
    }
    split("", field)
    name = ""
}
/^#/ { next }
/^[ \t]*$/ { flush_stanza(); next }
/^[ \t]/ {
    # A key may stand in the file itself: its lines keep their shape.
    if (name == "signed-by") {
        field[name] = field[name] "\n" $0
    } else {
        sub(/^[ \t]+/, ""); field[name] = field[name] " " $0
    }
    next
}
{
    colon = index($0, ":")
    name = tolower(substr($0, 1, colon - 1))
    value = substr($0, colon + 1)
    gsub(/^[ \t]+|[ \t\r]+$/, "", value)
    gsub(/\t/, " ", value)
    field[name] = value
}
END { flush_stanza() }
AWK
    cat >"$tmp/oneline.awk" <<'AWK'
# deb [ key=value ... ] URI suite component...
$1 == "deb" {
    line = $0
    sub(/[ \t]*#.*$/, "", line)
    sub(/^[ \t]*deb[ \t]+/, "", line)
    options = ""
    if (line ~ /^\[/) {
        options = substr(line, 2, index(line, "]") - 2)
        line = substr(line, index(line, "]") + 1)
    }
    n = split(line, word, " ")
    if (word[2] != suite || word[1] ~ /^cdrom:/) { next }
    main = 0
    for (i = 3; i <= n; i++) { if (word[i] == "main") { main = 1 } }
    if (!main) { next }
    print "URIs: " word[1]
    m = split(options, option, " ")
    for (i = 1; i <= m; i++) {
        eq = index(option[i], "=")
        key = tolower(substr(option[i], 1, eq - 1))
        value = substr(option[i], eq + 1)
        gsub(/,/, " ", value)
        if (key == "signed-by") { print "Signed-By: " value }
        if (key == "trusted") { print "Trusted: " value }
        if (key == "check-valid-until") { print "Check-Valid-Until: " value }
    }
    print ""
}
AWK
}

# $1: stanza head. Tries it out in full before anything of the machine's is
# touched except our own two files.
try_mirror() {
    local head=$1
    {
        printf '# Written by contrib/setup-debian.sh of shootdown.\n'
        printf 'Types: deb\n%s\n' "$(grep -v '^$' <<<"$head" | head -n 1)"
        printf 'Suites: %s\nComponents: main\n' "$newer_suite"
        tail -n +2 <<<"$head"
    } >"$tmp/source"
    as_root install -m 644 "$tmp/source" "$source_file"
    apt_get update -o Dir::Etc::sourcelist="$source_file" \
        -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0 \
        >"$tmp/update.log" 2>&1 || true
    candidate_is_new_enough
}

add_newer_suite() {
    local suite head
    # shellcheck disable=SC1091
    suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    [ -n "$suite" ] || die "/etc/os-release names no VERSION_CODENAME;" \
        "install libunicorn-dev >= $unicorn_min by hand"

    printf '%s\n' "# Written by contrib/setup-debian.sh of shootdown." \
        "Package: *" "Pin: release n=$newer_suite" "Pin-Priority: -1" "" \
        "Package: libunicorn*" "Pin: release n=$newer_suite" \
        "Pin-Priority: 990" >"$tmp/pin"
    # The pin first: at no moment may the newer suite be there without it.
    as_root install -m 644 "$tmp/pin" "$pin_file"

    own_mirrors /etc/apt "$suite" >"$tmp/heads"
    [ -s "$tmp/heads" ] || die "no apt source of this machine carries" \
        "'$suite main'; add one, or install libunicorn-dev >=" \
        "$unicorn_min by hand"
    head=
    while IFS= read -r line || [ -n "$line" ]; do
        if [ -n "$line" ]; then
            head+=$line$'\n'
            continue
        fi
        [ -n "$head" ] || continue
        say "looking for Unicorn in $newer_suite at" \
            "$(sed -n 's/^URIs: //p' <<<"$head")"
        if try_mirror "$head"; then
            return 0
        fi
        say "no libunicorn-dev >= $unicorn_min there"
        head=
    done < <(cat "$tmp/heads"; echo)
    as_root rm -f "$source_file" "$pin_file"
    cat "$tmp/update.log" >&2
    die "no mirror of this machine has libunicorn-dev >= $unicorn_min in" \
        "$newer_suite; install it by hand and run this again"
}

# $1: have the package lists been updated?
install_fuzzers() {
    local missing=() p

    for p in "${fuzz_packages[@]}"; do
        is_installed "$p" || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$1" = yes ] || apt_update
    say "installing the fuzzers: ${missing[*]}"
    for p in "${missing[@]}"; do
        if [ -z "$(candidate_of "$p")" ]; then
            say "no package $p: tests that need it are skipped"
        elif ! apt_get install -y --no-install-recommends "$p" \
            >"$tmp/install.log" 2>&1; then
            tail -n 5 "$tmp/install.log" | sed 's/^/setup:   /'
            say "could not install $p: tests that need it are skipped"
        fi
    done
}

main() {
    local missing=() p updated=no fuzz=no

    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    write_parsers
    if [ "${1:-}" = --mirrors ]; then # what it would try, for the tests
        own_mirrors "$2" "$3"
        return 0
    fi
    [ "${1:-}" != --fuzz ] || fuzz=yes
    if ! command -v dpkg-query >/dev/null || [ ! -d /etc/apt ]; then
        die "this is not Debian; install by hand: ${build_packages[*]}" \
            "${test_packages[*]} libunicorn-dev (>= $unicorn_min)"
    fi

    for p in "${build_packages[@]}" "${test_packages[@]}"; do
        is_installed "$p" || missing+=("$p")
    done
    if [ ${#missing[@]} -eq 0 ] && has_unicorn; then
        [ $fuzz = no ] || install_fuzzers no
        say "nothing to install (Unicorn $(pkg-config --modversion unicorn))"
        return 0
    fi

    if [ ${#missing[@]} -gt 0 ]; then
        apt_update
        updated=yes
        say "installing: ${missing[*]}"
        apt_get install -y --no-install-recommends "${missing[@]}" \
            >"$tmp/install.log" 2>&1 || {
            tail -n 20 "$tmp/install.log" >&2
            die "apt-get could not install: ${missing[*]}"
        }
    fi
    if ! has_unicorn; then
        if ! candidate_is_new_enough && [ $updated = no ]; then
            apt_update
        fi
        candidate_is_new_enough || add_newer_suite
        say "installing libunicorn-dev $(candidate_of libunicorn-dev)"
        apt_get install -y --no-install-recommends libunicorn-dev \
            >"$tmp/install.log" 2>&1 || {
            tail -n 20 "$tmp/install.log" >&2
            die "apt-get could not install libunicorn-dev"
        }
        has_unicorn || die "pkg-config still does not see unicorn >=" \
            "$unicorn_min (found:" \
            "$(pkg-config --modversion unicorn 2>/dev/null || echo none))"
    fi
    [ $fuzz = no ] || install_fuzzers $updated
    say "ready (Unicorn $(pkg-config --modversion unicorn))"
}

main "$@"
