#!/bin/sh
# start SCRIPT NAME [ADDRESS HUB]: process 1 of a machine runs SCRIPT; its pid and start time go to pids/NAME
cd /
lab='/home/ann/my labs/one'
script=$1
shift
sh "$lab/bin/$script" "$@" </dev/null >>"$lab/log/machine-$1.log" 2>&1 &
pid=$!
read -r stat <"/proc/$pid/stat"
name=$1
set -- $stat
shift 21
echo "$pid $1" >"$lab/pids/$name"
