#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shell_loop.sh BODY FOLDER SHELLS ROUNDS: SHELLS shells at once run BODY,
# ROUNDS times each. All outputs must be equal; the first is printed once.
body=$1 folder=$2 shells=$3 rounds=$4

one_shell() { # $1: its number
    r=0
    while [ $r -lt "$rounds" ]; do
        T=$folder/$1/$r
        mkdir -p "$T/in"
        (T=$T/in; . "$body") >"$T/out" 2>&1
        cmp "$T/out" "$folder/0/0/out" >"$T/difference" 2>&1
        r=$((r + 1))
    done
}

# The one that the others are compared with comes first.
mkdir -p "$folder/0/0/in"
(T=$folder/0/0/in; . "$body") >"$folder/0/0/out" 2>&1
cat "$folder/0/0/out"
n=1
while [ $n -le "$shells" ]; do
    one_shell $n &
    n=$((n + 1))
done
wait
bad=0
for file in "$folder"/*/*/difference; do
    if [ -s "$file" ]; then
        bad=$((bad + 1))
        cat "$file"
        cat "${file%difference}out"
    fi
done
echo "shell_loop: $((shells * rounds)) rounds, $bad differ"
rm -r "$folder"
[ $bad -eq 0 ]
