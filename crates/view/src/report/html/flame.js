// flame graphs: outermost frame above
(() => {
  const ROW = 20;
  const LEAST = 0.6;
  const scaled = (ns) => {
    const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
    const [unit, size] = units.find(([, from]) => ns >= from) || units[3];
    return `${unit === "ns" ? ns : (ns / size).toFixed(unit === "s" ? 2 : 1)} ${unit}`;
  };
  const share = (part, whole) => `${(part / Math.max(whole, 1) * 100).toFixed(1)} %`;
  const element = (name, words) => {
    const made = document.createElement(name);
    made.textContent = words;
    return made;
  };
  const tip = document.getElementById("tip") || document.body.appendChild(Object.assign(document.createElement("div"), { id: "tip" }));
  tip.hidden = true;

  const read = (figure) => {
    const { counted, names, kinds, nodes: flat } = JSON.parse(figure.dataset.tree);
    const nodes = [];
    for (let at = 0; at < flat.length; at += 4) {
      const [parent, name, ns, count] = flat.slice(at, at + 4);
      const node = { up: null, name: names[name], kind: kinds[name], ns, count, down: [], depth: 0, left: 0 };
      if (nodes.length > 0) {
        node.up = nodes[parent];
        node.depth = node.up.depth + 1;
        node.left = node.up.left + node.up.down.reduce((sum, one) => sum + one.ns, 0);
        node.up.down.push(node);
      }
      nodes.push(node);
    }
    return { counted, root: nodes[0] };
  };

  const graph = (figure) => {
    const { counted, root } = read(figure);
    const area = figure.querySelector(".frames");
    const [search, found, whole] = ["input", "output", "button.whole"].map((what) => figure.querySelector(what));
    const past = [];
    let zoomed = root;
    let current = root;
    let wanted = "";
    let shown = new Map();

    const matches = (node) => wanted !== "" && node !== root && node.name.toLowerCase().includes(wanted);
    const words = (node) => {
      const lines = [`${scaled(node.ns)}, ${share(node.ns, root.ns)} of all, ${node.count.toLocaleString("en")} ${counted}`];
      if (zoomed !== root && node.depth > zoomed.depth) lines.push(`${share(node.ns, zoomed.ns)} of ${zoomed.name}`);
      const below = node.down.reduce((sum, one) => sum + one.ns, 0);
      if (node.down.length > 0 && below < node.ns) lines.push(`${scaled(node.ns - below)} of it in frames that are not drawn`);
      return lines;
    };
    const box = (node, left, width) => {
      const named = width * area.clientWidth > 36;
      const made = element("div", named ? node.name : "");
      made.className = `f ${node.kind}${named ? " named" : ""}`;
      if (node.depth < zoomed.depth) made.classList.add("outer");
      if (wanted !== "") made.classList.add(matches(node) ? "hit" : "miss");
      Object.assign(made.style, { left: `${left * 100}%`, width: `${width * 100}%`, top: `${node.depth * ROW}px` });
      made.tabIndex = node === current ? 0 : -1;
      made.setAttribute("role", "treeitem");
      made.setAttribute("aria-level", node.depth + 1);
      made.setAttribute("aria-label", `${node.name}: ${words(node)[0]}`);
      made.node = node;
      shown.set(node, made);
      return made;
    };
    const draw = () => {
      shown = new Map();
      const boxes = [];
      for (let outer = zoomed.up; outer; outer = outer.up) boxes.unshift(box(outer, 0, 1));
      const open = [zoomed];
      let deepest = zoomed.depth;
      while (open.length > 0) {
        const node = open.pop();
        const width = node.ns / Math.max(zoomed.ns, 1);
        if (width * area.clientWidth < LEAST) continue;
        boxes.push(box(node, (node.left - zoomed.left) / Math.max(zoomed.ns, 1), width));
        deepest = Math.max(deepest, node.depth);
        open.push(...node.down);
      }
      area.style.height = `${(deepest + 1) * ROW}px`;
      area.replaceChildren(...boxes);
      whole.hidden = zoomed === root;
    };
    const say = () => {
      const open = [zoomed];
      let [ns, frames] = [0, 0];
      while (wanted !== "" && open.length > 0) {
        const node = open.pop();
        if (matches(node)) {
          ns += node.ns;
          frames += 1;
        } else {
          open.push(...node.down);
        }
      }
      found.textContent = wanted === "" ? "" : `${share(ns, zoomed.ns)} (${scaled(ns)}) in ${frames.toLocaleString("en")} ${frames === 1 ? "path" : "paths"}`;
    };
    const focus = (node) => {
      if (!node || !shown.has(node)) return;
      if (shown.has(current)) shown.get(current).tabIndex = -1;
      current = node;
      shown.get(node).tabIndex = 0;
      shown.get(node).focus();
    };
    const show = (node) => {
      zoomed = node;
      current = node;
      tip.hidden = true;
      draw();
      say();
      focus(node);
    };
    const zoom = (node) => {
      past.push(zoomed);
      show(node);
    };
    const beside = (step) => {
      const row = [...shown.keys()].filter((node) => node.depth === current.depth).sort((a, b) => a.left - b.left);
      return row[row.indexOf(current) + step];
    };
    const point = (node, x, y) => {
      tip.replaceChildren(element("b", node.name), ...words(node).map((line) => element("div", line)));
      tip.hidden = false;
      const left = x + 14 + tip.offsetWidth > innerWidth ? x - 14 - tip.offsetWidth : x + 14;
      tip.style.left = `${Math.max(left, 4)}px`;
      tip.style.top = `${Math.max(Math.min(y + 14, innerHeight - tip.offsetHeight - 4), 4)}px`;
    };

    area.addEventListener("click", (event) => {
      if (event.target.node) zoom(event.target.node);
    });
    area.addEventListener("pointermove", (event) => {
      if (event.target.node) point(event.target.node, event.clientX, event.clientY);
      else tip.hidden = true;
    });
    area.addEventListener("pointerleave", () => { tip.hidden = true; });
    area.addEventListener("focusin", (event) => {
      const edges = event.target.getBoundingClientRect();
      if (event.target.node && event.target.matches(":focus-visible")) point(event.target.node, Math.max(edges.left, 0), edges.bottom);
    });
    area.addEventListener("focusout", () => { tip.hidden = true; });
    const keys = {
      ArrowDown: () => focus(current.down[0]),
      ArrowUp: () => focus(current.up),
      ArrowLeft: () => focus(beside(-1)),
      ArrowRight: () => focus(beside(1)),
      Enter: () => zoom(current),
      Escape: () => show(past.pop() || root),
      "/": () => search.focus(),
    };
    area.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    search.addEventListener("input", () => {
      wanted = search.value.trim().toLowerCase();
      draw();
      say();
    });
    whole.addEventListener("click", () => zoom(root));
    let width = 0;
    new ResizeObserver(() => {
      if (width !== area.clientWidth) draw();
      width = area.clientWidth;
    }).observe(area);
    figure.classList.add("drawn");
    figure.querySelector("details.paths").open = false;
    draw();
  };
  document.querySelectorAll("figure.flame").forEach(graph);
  document.querySelectorAll(".keys").forEach((keys) => { keys.hidden = false; });
})();
