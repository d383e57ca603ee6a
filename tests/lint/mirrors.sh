#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# setup-debian.sh finds the machine's mirror in both formats of apt sources,
# keeps its trust options, and leaves out what is no Debian archive.
# $1: the root of the tree
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/sources.list.d"
cat >"$dir/sources.list" <<'LIST'
# deb http://commented.example/debian bookworm main
deb cdrom:[Debian 12]/ bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://other.example/tools bookworm main
deb-src http://source.example/debian bookworm main
deb http://plain.example/debian bookworm-updates main
deb [ signed-by=/usr/share/k1.gpg,/usr/share/k2.gpg check-valid-until=no ] http://one.example/debian/ bookworm main contrib # ours
deb http://stable.example/repo bookworm stable
LIST
cat >"$dir/sources.list.d/a.sources" <<'DEB822'
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb deb-src
URIs: http://two.example/debian
  http://three.example/debian
Suites: bookworm bookworm-updates
Components: main
  contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abcd
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
DEB822
got=$("$1/contrib/setup-debian.sh" --mirrors "$dir" bookworm)
want='URIs: http://two.example/debian
Signed-By: 
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abcd
 -----END PGP PUBLIC KEY BLOCK-----

URIs: http://one.example/debian/
Signed-By: /usr/share/k1.gpg /usr/share/k2.gpg
Check-Valid-Until: no

URIs: http://other.example/tools
Signed-By: /k.gpg'
if [ "$got" != "$want" ]; then
    diff <(printf '%s\n' "$want") <(printf '%s\n' "$got")
    exit 1
fi
echo "three mirrors, in order"
