# privileged.sh - sourced: as_root COMMAND…, and can_bpf, which tells whether COMMAND could load BPF programs.
# shellcheck shell=bash

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -E env "PATH=$PATH" "$@"; fi
}

# CAP_BPF (39) and CAP_PERFMON (38), or CAP_SYS_ADMIN (21), in the effective set of a root command.
can_bpf() {
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || return 1
  local effective
  effective=0x$(as_root sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status) || return 1
  (((effective >> 21 & 1) || ((effective >> 38 & 1) && (effective >> 39 & 1))))
}
