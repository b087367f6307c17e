
// Blocks that are left out: what read one reads what that read, along a wire through its place

const gone = document.getElementById("hide");

function lies(path, holders) { return holders.some(one => path === one || path?.startsWith(one + ".")); }

function leaveOut() {
  for (const one of picture.querySelectorAll(".gone")) one.classList.remove("gone");
  for (const one of picture.querySelectorAll(".bridge")) one.remove();
  const wanted = words(gone), known = wanted.filter(path => view.nodes.some(one => lies(one, [path])));
  const told = wanted.filter(path => !known.includes(path)).map(path => `no block ${path} here`);
  const done = known.filter(path => { const why = through(path); if (why) told.push(why); return !why; });
  for (const thing of picture.querySelectorAll(".node, .frame")) if (lies(thing.dataset.id, done)) thing.classList.add("gone");
  // what is read there alone goes with it
  for (let index = 0; index < nodes.length; index++) {
    const out = view.links.filter(([source]) => source === index), side = nodes[index].matches(".reference, .k-pos");
    if (side && out.length && out.every(([, target]) => nodes[target].matches(".gone"))) nodes[index].classList.add("gone");
  }
  if (wanted.length) document.getElementById("hits").textContent = told.join("; ");
  const left = [...new Set(view.nodes.filter((path, at) => nodes[at].matches(".node") && lies(path, done)))];
  return left.filter(path => !left.some(other => path.startsWith(other + "."))).length;  // without parts of others
}

// Leads one wire through the place of a block; returns why that cannot be
function through(path) {
  const inside = edge => [lies(edge.dataset.a, [path]), lies(edge.dataset.b, [path])];
  const ins = edges.filter(edge => { const [from, to] = inside(edge); return !from && to; });
  const outs = edges.filter(edge => { const [from, to] = inside(edge); return from && !to; });
  const streams = ins.filter(edge => edge.matches(".e-main")), sources = new Set(streams.map(edge => edge.dataset.a));
  if (outs.length && sources.size !== 1) return sources.size ? `without ${path}, its readers would read several values` : `nothing flows through ${path}`;
  const kept = outs.length ? streams.reduce((low, edge) => arrives(edge).y - arrives(edge).x > arrives(low).y - arrives(low).x ? edge : low) : null;
  for (const edge of edges) {
    const [from, to] = inside(edge);
    if ((from && to) || (to && edge !== kept)) edge.classList.add("gone");
  }
  for (const out of outs) bridge(kept, out);
  return "";
}

function arrives(edge) {
  const path = edge.querySelector("path"), head = edge.querySelector("polygon");
  return head ? head.points[0] : path.getPointAtLength(path.getTotalLength());
}

function bridge(before, after) {
  const start = arrives(before), end = after.querySelector("path").getPointAtLength(0), group = before.cloneNode(true), line = group.querySelector("path");
  before.querySelector("polygon")?.classList.add("gone");
  group.querySelector("polygon")?.remove();
  group.classList.add("bridge");
  group.dataset.b = after.dataset.b;
  const room = 7, lead = before.querySelector("path"), from = lead.getPointAtLength(lead.getTotalLength());  // where the line ended below its head
  line.setAttribute("d", `M${from.x} ${from.y}L${start.x} ${start.y}` + (Math.abs(start.x - end.x) < room || Math.abs(start.y - end.y) < room ? "" : `V${end.y}`) + `L${end.x} ${end.y}`);
  before.after(group);
  for (const text of picture.querySelectorAll(".shape")) {  // told of what is not there
    const { x, y } = text.getBBox();
    if (Math.abs(x - end.x) < 40 && Math.abs(y - end.y) < 40) text.classList.add("gone");
  }
}
