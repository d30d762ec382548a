#!/bin/sh
# Starts this run on this machine; `keep` goes on when its starter is gone.
job=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export PODWRIGHT_PYTHON='/opt/pod wright/bin/python3'
export PATH="$PATH":'/opt/pod wright/bin'
exec "$PODWRIGHT_PYTHON" -I -S "$job/pilot.pyz" keep --at-once 2 --gpus 0,1,2,3,4 "$job/../../sweep-7777-1/job/order.json" "$job/../../sweep-7777-2/job/order.json" "$job/../../sweep-7777-3/job/order.json"
