#!/bin/sh
# Gives each host that is not installed yet what it says with that it is: a token that lies among its answers, and a
# mark under the token's name, which the server moves to its place when the host names it. Nothing of it is read.
# HOST=MAC...: those that lack one get one. With `check` before them: says whether all have theirs.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
root=@root@ user=@user@
only_looks=
if [ "$1" = check ]; then only_looks=yes; shift; fi
umask 027
for pair; do
    host=${pair%%=*} mac=${pair#*=}
    [ ! -e "$root/done/$mac.ipxe" ] || continue
    if [ -n "$(ls -A "$root/waiting/$host" 2>/dev/null)" ] && [ -e "$root/answers/$host.token" ]; then continue; fi
    if [ -n "$only_looks" ]; then echo "$host has no token"; exit; fi
    token=$(od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n')
    rm -rf "$root/waiting/.new" "$root/waiting/$host"
    mkdir "$root/waiting/.new"
    echo installed >"$root/waiting/.new/$token"
    chown -R "$user" "$root/waiting/.new"
    mv -T "$root/waiting/.new" "$root/waiting/$host"
    echo "$token" >"$root/answers/.$host.new"
    chgrp "$user" "$root/answers/.$host.new"
    mv -T "$root/answers/.$host.new" "$root/answers/$host.token"
done
echo every host has its token
