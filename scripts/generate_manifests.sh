#!/bin/bash
# generate_manifests.sh - writes deploy/kubernetes/gpuscope.yaml: what the chart makes of its values, and a namespace.
set -euo pipefail
cd "$(dirname "$0")/.."
helm=target/tools/bin/helm
[ -x "$helm" ] || scripts/fetch-tools.sh
{
  cat <<'YAML'
# gpuscope on every node, without Helm: kubectl apply -f gpuscope.yaml
# Written by scripts/generate_manifests.sh from the chart beside it; change that one.
apiVersion: v1
kind: Namespace
metadata:
  name: gpuscope
  labels:
    # hostPID and folders of the node are allowed to privileged namespaces only; the container itself is not privileged.
    pod-security.kubernetes.io/enforce: privileged
YAML
  "$helm" template gpuscope deploy/kubernetes/chart --namespace gpuscope 2>/dev/null | sed '/^# Source: /d'
} > deploy/kubernetes/gpuscope.yaml
