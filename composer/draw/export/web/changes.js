
// What differs between two models: a list, whose changes are found in the picture and in both recipes

const list = document.getElementById("changes");
let picked = -1;  // which change, by its place among data.changes

function number(badge) { return Number(badge.textContent.trim().split(" ")[1]) - 1; }

document.addEventListener("shown", () => {
  list.replaceChildren(...view.changes.map(({ change }, at) => {
    const { happened, sign, where, what } = data.changes[change];
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.onclick = () => pick(picked === change ? -1 : at);
    for (const [tag, text, name] of [["i", `${sign} ${at + 1}`, `c-${happened}`], ["b", where, ""], ["span", what, ""]]) {
      const part = document.createElement(tag);
      part.textContent = text;
      part.className = name;
      button.append(part, " ");
    }
    item.append(button);
    return item;
  }));
  for (const badge of picture.querySelectorAll(".badge"))
    if (number(badge) >= 0) {
      badge.classList.add("pickable");
      badge.onclick = () => pick(number(badge));
    }
  const kept = view.changes.findIndex(({ change }) => change === picked);
  press(kept);
  if (kept >= 0) queueMicrotask(() => { if (chosen < 0) pick(kept); });
});

// A chosen block has its changes marked in the list
document.addEventListener("chosen", () => {
  press(-1);
  const here = view.changes.map(({ places }) => chosen >= 0 && places.includes(view.nodes[chosen]));
  [...list.children].forEach((item, at) => item.classList.toggle("here", here[at]));
  list.children[here.indexOf(true)]?.scrollIntoView({ block: "nearest" });
});

function press(at) {
  picked = at < 0 ? -1 : view.changes[at].change;
  [...list.children].forEach((item, number) => item.firstChild.setAttribute("aria-pressed", String(number === at)));
}

// Shows one change, by its place in the list: everything else is dimmed
function pick(at) {
  choose(-1);
  press(at);
  if (at < 0) return;
  const { change, places, wires } = view.changes[at], paths = new Set(places);
  const lit = nodes.map((node, index) => paths.has(view.nodes[index]));
  nodes.forEach((node, index) => node.classList.add(lit[index] ? "lit" : "dim"));
  const inside = edge => paths.has(edge.dataset.a) && paths.has(edge.dataset.b);
  edges.forEach((edge, index) => edge.classList.add(wires.includes(index) || inside(edge) ? "lit" : "dim"));
  for (const ring of picture.querySelectorAll("[data-of]:not([data-of=''], g)")) ring.classList.add(paths.has(ring.dataset.of) ? "lit" : "dim");
  for (const badge of picture.querySelectorAll(".badge")) if (number(badge) >= 0 && number(badge) !== at) badge.classList.add("dim");
  const { sign, where, what } = data.changes[change];
  const borders = [...picture.querySelectorAll(".frame")].filter(frame => paths.has(frame.dataset.id));
  const heads = borders.flatMap(frame => { const found = spanOf(frame); return found ? [[frame.dataset.id, [found[0], found[1], found[1]]]] : []; });
  const shown = [...heads, ...nodes.flatMap((node, index) => lit[index] && span(index) ? [[view.nodes[index], span(index)]] : [])];
  const rows = [["change", what]];
  data.models.forEach((model, one) => {
    const spans = shown.filter(([path]) => side(path) === one).map(([, lines]) => lines);
    rows.push([model, written(one, spans) || "nothing here"]);
  });
  about.replaceChildren(table(`${sign} ${at + 1}  ${where}`, rows));
  markAll(shown.map(([, lines]) => lines));
  list.children[at].scrollIntoView({ block: "nearest" });
  for (const badge of [...picture.querySelectorAll(".badge")].filter(badge => number(badge) === at).reverse())
    badge.scrollIntoView({ block: "nearest", inline: "nearest" });
}

document.addEventListener("keydown", event => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey || !"np".includes(event.key) || !view?.changes.length) return;
  const count = view.changes.length, at = view.changes.findIndex(({ change }) => change === picked);
  pick(event.key === "n" ? (at + 1) % count : (at + count - (at >= 0)) % count);
  list.children[view.changes.findIndex(({ change }) => change === picked)].firstChild.focus();
  event.preventDefault();
});
