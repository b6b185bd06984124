# verifying.sh - sourced by the scripts that compare gpuscope with a real GPU, in the folder of the project, when $gpuscope and
# $out say what was asked for: then $out is a folder by its full path, and $work one that goes away, with logs in it.
# shellcheck shell=bash disable=SC2154
# unless a script says otherwise, what is compared is what the kernel's engine says
export GPUSCOPE_ENGINE=${GPUSCOPE_ENGINE:-kernel}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
work=$(mktemp -d); mkdir "$work/logs"; trap 'rm -rf "$work"' EXIT
[ -x "$gpuscope" ] || { echo "${0##*/}: no gpuscope at $gpuscope" >&2; exit 1; }
[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing ||
  echo "${0##*/}: tracefs cannot be mounted" >&2
