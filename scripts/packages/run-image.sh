#!/bin/bash
# run-image.sh - runs the image of a release as the chart's pod would run: its arguments, its environment, its capabilities and no
# others, without new privileges, on a read-only root, among the processes of the machine. It must become ready and serve.
# usage: run-image.sh IMAGE.tar CHART.tgz          needs root, skopeo, umoci, runc, helm (scripts/fetch-tools.sh)
set -euo pipefail
cd "$(dirname "$0")/../.."
image=${1:?usage: run-image.sh IMAGE.tar CHART.tgz} chart=${2:?usage: run-image.sh IMAGE.tar CHART.tgz}
[ -x target/tools/bin/helm ] || scripts/fetch-tools.sh
scratch=$(mktemp -d)
ended() {
  [ -z "${running:-}" ] || runc delete --force gpuscope-image-test 2>/dev/null || true
  [ -z "${program:-}" ] || kill "$program" 2>/dev/null || true
  rm -rf "$scratch"
}
trap ended EXIT

skopeo copy --quiet "oci-archive:$image" "oci:$scratch/layout:image"
skopeo inspect "oci:$scratch/layout:image" --config | jq -e '.config.Entrypoint == ["/usr/bin/gpuscope"]' >/dev/null
umoci --log=error unpack --image "$scratch/layout:image" "$scratch/bundle"

port=$((20000 + RANDOM % 20000))
target/tools/bin/helm template gpuscope "$chart" --set "port=$port,healthPort=$((port + 1)),listenAddress=127.0.0.1" 2>/dev/null |
  PYTHONPATH=target/tools/python python3 -c 'import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)' >"$scratch/objects"
mkdir "$scratch"/{config,state}
jq -r '.[] | select(.kind == "ConfigMap" and .data["serve.toml"]) | .data["serve.toml"]' "$scratch/objects" >"$scratch/config/serve.toml"
jq '[.[] | select(.kind == "DaemonSet")][0].spec.template.spec.containers[0]' "$scratch/objects" >"$scratch/container"

jq --slurpfile container "$scratch/container" --arg scratch "$scratch" '
  $container[0] as $pod | ($pod.securityContext.capabilities.add | map("CAP_" + .)) as $rights
  | .process.terminal = false | .process.noNewPrivileges = true | .root.readonly = $pod.securityContext.readOnlyRootFilesystem
  | .process.args = ["/usr/bin/gpuscope"] + $pod.args
  | .process.env += [$pod.env[] | select(.value) | .name + "=" + .value]
  | .process.capabilities = {bounding: $rights, effective: $rights, permitted: $rights, inheritable: [], ambient: []}
  | .linux.namespaces = [{type: "mount"}, {type: "uts"}, {type: "ipc"}]
  | del(.linux.resources, .linux.uidMappings, .linux.gidMappings)
  | .mounts += [
      {destination: "/etc/gpuscope", type: "bind", source: ($scratch + "/config"), options: ["rbind", "ro"]},
      {destination: "/var/lib/gpuscope", type: "bind", source: ($scratch + "/state"), options: ["rbind", "rw"]}]
' "$scratch/bundle/config.json" >"$scratch/config.json"
mv "$scratch/config.json" "$scratch/bundle/config.json"
echo "  rights: $(jq -r '.process.capabilities.bounding | join(" ")' "$scratch/bundle/config.json")"

running=1
runc run --bundle "$scratch/bundle" gpuscope-image-test >"$scratch/out" 2>&1 &
for _ in $(seq 1 300); do
  kill -0 $! 2>/dev/null || break
  code=$(curl --silent --noproxy '*' --max-time 5 --output /dev/null --write-out '%{http_code}' "http://127.0.0.1:$((port + 1))/readyz" || true)
  [ "$code" != 200 ] || break
  sleep 0.2
done
if [ "${code:-}" != 200 ]; then echo "run-image.sh: it does not become ready: $(cat "$scratch/out")" >&2; exit 1; fi
scrape() { curl --silent --noproxy '*' --max-time 20 "http://127.0.0.1:$port/metrics" >"$scratch/metrics"; }
scrape
grep '^gpuscope_build_info' "$scratch/metrics" | sed 's/^/  /'
sim/build.sh >/dev/null
sim/out/gpusim train 1000000 >/dev/null & program=$!
for _ in $(seq 1 100); do
  scrape
  calls=$(awk '/^gpuscope_api_calls_total/ { sum += $NF } END { printf "%d", sum }' "$scratch/metrics")
  [ "$calls" -eq 0 ] || break
  sleep 0.5
done
kill $program
[ "$calls" -gt 0 ] || { echo "run-image.sh: the calls of a program beside are not counted: $(cat "$scratch/out")" >&2; exit 1; }
echo "  calls of a simulated CUDA program beside, counted from within: $calls"
runc kill gpuscope-image-test TERM
wait $! && running='' || { echo "run-image.sh: it ends with $?: $(cat "$scratch/out")" >&2; exit 1; }
echo "  it became ready, was scraped, and ended by itself when asked to"
