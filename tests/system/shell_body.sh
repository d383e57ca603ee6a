# SPDX-License-Identifier: GPL-2.0-or-later
# One round of what shell scripts do; prints the same wherever it runs. Works in
# $T, a folder of its own. Sourced by shell_loop.sh.
cd "$T" || exit 1

section() { echo "== $1"; }

section redirections
echo one >a
echo two >>a
{ echo three; echo four; } >>a
cat <a
echo err >&2 2>b; cat b
(echo out; echo err >&2) >c 2>&1; cat c
exec 5>d; echo five >&5; exec 5>&-; cat d
: >a2; wc -c <a2
cat a nothing-here 2>/dev/null | wc -l

section pipes
seq 1 100 | grep 7 | sort -rn | head -5 | tr '\n' ' '; echo
seq 1 2000 | tee all | tail -1; wc -l <all
yes | head -3
cat a | while read -r word; do printf '<%s>' "$word"; done; echo
false | true; echo $?
seq 1 20000 | md5sum

section substitution
x=$(echo "$(echo inner) outer"); echo "$x"
n=0; for i in $(seq 1 10); do n=$((n + i * i)); done; echo $n
echo "${x#inner } ${x%outer}| ${#x} ${nothing:-default}"
echo `expr 6 \* 7`
set -- a "b c" d; echo $# "$2"; shift; echo "$*"

section here-documents
cat <<END
value $n
  \$n stays
END
cat <<'END' | sed 's/a/A/g'
a $n `date`
END
read -r p q <<END
first second third
END
echo "$q/$p"

section jobs
for i in 1 2 3 4; do (exit $i) & eval "pid$i=$!"; done
for i in 4 3 2 1; do eval "wait \$pid$i"; echo "job $i: $?"; done
(sleep 0.05; echo late) & wait; echo waited
sleep 60 & kill $!; wait $! 2>/dev/null; echo "killed: $?"
(trap 'echo trapped; exit 9' TERM; while :; do sleep 0.01; done) &
sleep 0.2; kill -TERM $!; wait $!; echo "status $?"
trap 'echo bye' EXIT; trap - EXIT
kill -STOP $$ 2>/dev/null & wait; kill -CONT $$ 2>/dev/null

section tests
test -f a && [ -d . ] && [ ! -e zzz ] && echo files
[ 3 -lt 10 ] && [ abc != abd ] && [ -n x ] && [ -z "" ] && echo values
case file.tar.gz in *.zip) echo zip ;; *.tar.*) echo tar ;; esac
f() { local v=$1; [ "$v" -le 1 ] && echo 1 && return
      echo $((v * $(f $((v - 1))))); }
f 6

section tools
printf 'b 2\na 10\nc 1\n' >t
sort t; sort -k2n t; sort -k2nr t | awk '{ s += $2; print NR, $1 } END { print s }'
sed -n '2p;$p' t; sed 's/\([a-z]\) \([0-9]*\)/\2-\1/' t
grep -c . t; grep -v a t; grep -E '^(a|c)' t
awk -F' ' 'BEGIN { OFS = ":" } { $1 = toupper($1); print }' t
cut -d' ' -f2 t | tr -d '\n'; echo
printf '%05d|%-5s|%x\n' 42 ab 255
head -c 3000 /dev/zero | wc -c; dd if=/dev/zero bs=512 count=3 2>/dev/null | wc -c
echo hello | rev; echo "a,b,c" | awk -F, '{ print $3 $1 }'; uniq -c <<END
x
x
y
END

section folders
mkdir -p p/q/r; echo deep >p/q/r/file; cp p/q/r/file copy; mv copy moved
ln -s p/q/r/file link; cat link; readlink link; cat moved
find p | sort; ls p/q; (cd p/q && pwd | sed "s,.*/p,p,"); rm -r p; ls
echo once >h; ln h h2; ln h2 h3; stat -c %h h3; echo more >>h3; rm h; cat h2
find . -samefile h2 | sort; mv h3 h2; stat -c %h h2 h3; rm -f h2 h3
echo p/q/r | xargs -n1 basename; seq 1 6 | xargs -n 3 echo
chmod 600 moved; ls -l moved | cut -c1-10; rm -f moved link
printf '#!/bin/sh\necho "script $0 $#" | sed "s,/.*/,,"\nexit 3\n' >s.sh
chmod +x s.sh; ./s.sh x y; echo $?
printf 'echo no line\n' >s2.sh; chmod +x s2.sh; ./s2.sh
cat nothing 2>/dev/null || echo "failed"; ./nothing 2>/dev/null; echo $?
