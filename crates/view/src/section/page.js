"use strict";
(() => {
  const all = (what, within) => [...(within || document).querySelectorAll(what)];
  const root = document.documentElement;

  // light or dark: as the system, until somebody chooses
  const kept = () => { try { return localStorage.getItem("gpuscope-theme"); } catch { return null; } };
  if (kept()) root.dataset.theme = kept();
  document.getElementById("theme").addEventListener("click", () => {
    const dark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("gpuscope-theme", root.dataset.theme); } catch { /* a page from a file may not */ }
  });

  // tables
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
  };
  const sort = (table, column) => {
    const head = table.tHead.rows[0].cells[column];
    const numeric = head.classList.contains("n");
    const first = numeric ? "descending" : "ascending";
    const other = numeric ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    [...head.parentNode.cells].forEach((cell) => cell.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const shown = all("tr:not(.more)", body).length;
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
    });
    rows.forEach((row, index) => row.classList.toggle("more", index >= shown));
    body.append(...rows);
  };
  all("table").forEach((table) => {
    all("th", table).forEach((head, column) => {
      head.firstChild.addEventListener("click", () => sort(table, column));
    });
  });
  all("button.all").forEach((button) => button.addEventListener("click", () => {
    button.parentNode.querySelector("table").classList.add("open");
    button.remove();
  }));

  // plots: one cursor through all of them
  const time = document.getElementById("time");
  if (!time) return;
  const [from, to] = [Number(time.dataset.from), Number(time.dataset.to)];
  const plots = all(".plot", time);
  const read = new Map(plots.map((plot) => [plot, JSON.parse(plot.dataset.series || "[]")]));
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const scaled = (number, units, base) => {
    let place = 0;
    while (number >= base && place < units.length - 1) { number /= base; place += 1; }
    return `${place === 0 ? Math.round(number) : number.toFixed(1)} ${units[place]}`;
  };
  const written = (number, unit) => {
    if (unit === "bytes") return scaled(number, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
    if (unit === "bytes/s") return scaled(number, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"], 1000);
    if (unit === "/s") return `${Math.round(number).toLocaleString("en")}/s`;
    return number.toFixed(2);
  };
  // the last point at or before
  const at = (points, when) => {
    let [low, high] = [0, points.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] <= when) low = middle + 1; else high = middle;
    }
    return low > 0 ? points[low - 1][1] : null;
  };
  const point = (when) => {
    const part = Math.min(Math.max((when - from) / Math.max(to - from, 1), 0), 1);
    all(".cursor", time).forEach((cursor) => {
      cursor.style.left = `${part * 100}%`;
      cursor.style.opacity = "0.7";
    });
  };
  const say = (plot, when, x, y) => {
    const lines = [`at ${(when / 1e9).toFixed(3)} s`];
    for (const [name, points] of read.get(plot)) {
      const number = at(points, when);
      if (number !== null) lines.push(`${name ? `${name}: ` : ""}${written(number, plot.dataset.unit)}`);
    }
    tip.replaceChildren(...lines.map((line) => {
      const row = document.createElement("div");
      row.textContent = line;
      return row;
    }));
    tip.hidden = false;
    const left = x + 14 + tip.offsetWidth > innerWidth ? x - 14 - tip.offsetWidth : x + 14;
    tip.style.left = `${Math.max(left, 4)}px`;
    tip.style.top = `${Math.min(y + 14, innerHeight - tip.offsetHeight - 4)}px`;
  };
  plots.forEach((plot) => {
    const area = plot.querySelector(".area");
    area.addEventListener("pointermove", (event) => {
      const box = area.getBoundingClientRect();
      const when = from + (event.clientX - box.left) / box.width * (to - from);
      point(when);
      say(plot, when, event.clientX, event.clientY);
    });
    area.addEventListener("pointerleave", () => {
      tip.hidden = true;
      all(".cursor", time).forEach((cursor) => { cursor.style.opacity = "0"; });
    });
  });
  all("button[data-at]").forEach((button) => button.addEventListener("click", () => {
    point(Number(button.dataset.at));
    time.scrollIntoView({ behavior: "smooth", block: "start" });
  }));
})();
