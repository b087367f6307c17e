"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const picture = document.getElementById("picture");
const tip = document.getElementById("tip");
const about = document.getElementById("about");
const search = document.getElementById("search");
const hint = about.innerHTML;
const SVG = "http://www.w3.org/2000/svg";
let view, nodes, edges, chosen = -1;

// Which view is shown

function show(key, focused = "") {
  view = data.views[key];
  view.svg ??= together(view.picture);
  picture.innerHTML = view.svg;
  const svg = picture.querySelector("svg");
  svg.setAttribute("role", "group");
  nodes = [...picture.querySelectorAll(".node")];
  const chips = [...picture.querySelectorAll(".chip")];
  for (const path of view.nodes.slice(nodes.length)) nodes.push(chips.find(chip => chip.dataset.id === path));
  edges = [...picture.querySelectorAll(".edge")];
  const written = new Set(view.links.flatMap(([, , wires, implied]) => implied ? [] : wires));
  for (const wire of view.links.flatMap(link => link[2])) edges[wire].classList.toggle("implied", !written.has(wire));
  nodes.forEach((node, index) => {
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    node.setAttribute("aria-label", label(index));
    node.setAttribute("aria-pressed", "false");
    node.onclick = () => choose(index === chosen ? -1 : index);
    node.ondblclick = () => open(index);
    node.onmouseenter = event => point(index, event);
    node.onmousemove = event => place(event.clientX, event.clientY);
    node.onmouseleave = leave;
    node.onfocus = () => { const box = node.getBoundingClientRect(); point(index, { clientX: box.right, clientY: box.top }); };
    node.onblur = leave;
    if (view.opens[view.nodes[index]]) { node.setAttribute("aria-expanded", "false"); node.setAttribute("aria-keyshortcuts", "+"); sign(node, view.opens[view.nodes[index]], "+"); }
  });
  for (const frame of picture.querySelectorAll(".frame")) {
    const target = view.closes[frame.dataset.id];
    if (target) sign(frame, target, "−");
  }
  for (const button of document.querySelectorAll("[data-level]"))
    button.setAttribute("aria-pressed", String(key === button.dataset.level));
  find(search.value);
  const at = focused ? view.nodes.findIndex(path => path === focused || path.startsWith(focused + ".")) : -1;
  choose(-1);
  if (at >= 0) { nodes[at].focus(); choose(at); }
}

// The text of a picture: of each thing its words and, between them, its points, told in tenths from where it stands
function together(rows) {
  let text = "";
  for (let row = 0; row < rows.length; row += 3)
    data.things[rows[row]].forEach((part, at) => { text += at % 2 ? (part + rows[row + (at % 4 === 1 ? 1 : 2)]) / 10 : data.words[part]; });
  return text;
}

// A sign at the upper left corner of what can be opened or closed
function sign(thing, target, text) {
  const area = thing.querySelector("rect, circle").getBBox();
  const made = document.createElementNS(SVG, "g");
  made.setAttribute("class", "sign");
  made.setAttribute("aria-hidden", "true");  // the keys + and −, and the buttons beside the picture, do the same
  made.dataset.sign = (text === "+" ? "open " : "close ") + thing.dataset.id;
  made.innerHTML = `<circle cx="${area.x}" cy="${area.y}" r="7"/><path d="M${area.x - 3.5} ${area.y}h7${text === "+" ? `m-3.5 -3.5v7` : ""}"/>`;
  made.onclick = event => { event.stopPropagation(); show(target, thing.dataset.id); };
  thing.append(made);
}

function open(index) {
  const path = view.nodes[index];
  if (view.opens[path]) show(view.opens[path], path);
}

function close(index) {
  const path = shutting(view.nodes[index]);
  if (path) show(view.closes[path], path);
}

// The innermost open thing around a node
function shutting(path) {
  return Object.keys(view.closes).filter(one => path.startsWith(one + ".")).sort((a, b) => b.length - a.length)[0];
}

// What is said about a node

function label(index) {
  const title = nodes[index].querySelector("title");
  return title ? title.textContent : view.nodes[index];
}

function told(index) {
  const path = view.nodes[index], node = nodes[index];
  const rows = [["path", path], ...Object.entries(data.facts[path] || {})];
  const lines = node.dataset.lines;
  if (lines) { const [first, last] = lines.split("-"); rows.push(["recipe", first === last ? `line ${first}` : `lines ${first}–${last}`]); }
  const whole = document.createElement("div"), head = document.createElement("b"), table = document.createElement("table");
  head.textContent = label(index);
  for (const [name, text] of rows) {
    const row = table.insertRow(), heading = document.createElement("th");
    heading.textContent = name;
    row.append(heading);
    row.insertCell().textContent = text;
  }
  whole.append(head, table);
  return whole;
}

function point(index, event) {
  tip.replaceChildren(told(index));
  tip.hidden = false;
  place(event.clientX, event.clientY);
  mark(index);
}

function place(x, y) {
  const area = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - area.width - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - area.height - 8)) + "px";
}

function leave() { tip.hidden = true; mark(chosen); }

function mark(index) {
  const [first, last] = index >= 0 && nodes[index].dataset.lines ? nodes[index].dataset.lines.split("-").map(Number) : [0, -1];
  document.querySelectorAll("#recipe li").forEach((line, at) => line.classList.toggle("marked", first <= at + 1 && at + 1 <= last));
  for (const line of first ? [last, first] : []) document.getElementById("line" + line).scrollIntoView({ block: "nearest" });
}

// The way of the data through a node

function reached(start, forwards) {
  const found = new Set(), waiting = [start];
  while (waiting.length) {
    const at = waiting.pop();
    for (const [source, target] of view.links) {
      const next = forwards ? (source === at ? target : -1) : (target === at ? source : -1);
      if (next >= 0 && !found.has(next)) { found.add(next); waiting.push(next); }
    }
  }
  return found;
}

function choose(index) {
  chosen = index;
  const classes = ["chosen", "near", "up", "down", "dim"];
  for (const thing of [...nodes, ...edges]) thing.classList.remove(...classes);
  nodes.forEach((node, at) => node.setAttribute("aria-pressed", String(at === index)));
  mark(index);
  if (index < 0) { about.innerHTML = hint; return; }
  const up = reached(index, false), down = reached(index, true);
  const lit = new Set();
  nodes[index].classList.add("chosen");
  nodes.forEach((node, at) => {
    if (at === index) return;
    node.classList.toggle("up", up.has(at));
    node.classList.toggle("down", down.has(at) && !up.has(at));
    node.classList.toggle("dim", !up.has(at) && !down.has(at));
  });
  for (const [source, target, wires] of view.links) {
    const side = target === index || (up.has(target) && up.has(source)) ? "up"
      : source === index || (down.has(source) && down.has(target)) ? "down" : "";
    const near = source === index || target === index;
    if (near) nodes[source === index ? target : source].classList.add("near");
    if (side) for (const wire of wires) { edges[wire].classList.add(side, ...(near ? ["near"] : [])); lit.add(wire); }
  }
  edges.forEach((edge, at) => edge.classList.toggle("dim", !lit.has(at)));
  about.replaceChildren(told(index));
  for (const [text, target, path] of [["Open", view.opens[view.nodes[index]], view.nodes[index]],
    ["Close", view.closes[shutting(view.nodes[index])], shutting(view.nodes[index])]]) {
    if (!target) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${text} ${path}`;
    button.onclick = () => show(target, path);
    about.append(button);
  }
}

// Search

function find(text) {
  const wanted = text.trim().toLowerCase();
  let count = 0;
  nodes.forEach((node, index) => {
    const hit = wanted !== "" && (label(index) + " " + view.nodes[index]).toLowerCase().includes(wanted);
    node.classList.toggle("hit", hit);
    count += hit;
  });
  document.getElementById("hits").textContent = wanted ? `${count} found` : "";
}

search.oninput = () => find(search.value);
search.onkeydown = event => {
  if (event.key === "Escape") { search.value = ""; find(""); search.blur(); }
  if (event.key !== "Enter") return;
  const hits = nodes.filter(node => node.classList.contains("hit"));
  const next = hits[(hits.indexOf(nodes[chosen]) + 1) % hits.length];
  if (next) { choose(nodes.indexOf(next)); next.scrollIntoView({ block: "center" }); }
};

// Keys

const keys = {
  ArrowUp: index => view.links.find(([source]) => source === index)?.[1],
  ArrowDown: index => view.links.find(([, target]) => target === index)?.[0],
  ArrowRight: index => (index + 1) % nodes.length,
  ArrowLeft: index => (index + nodes.length - 1) % nodes.length,
};

document.addEventListener("keydown", event => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  const index = nodes.indexOf(event.target.closest?.(".node, .chip"));
  if (event.key === "/") search.focus();
  else if (event.key === "Escape") choose(-1);
  else if (index < 0) return;
  else if (event.key === "Enter" || event.key === " ") choose(index === chosen ? -1 : index);
  else if (event.key === "+" || event.key === "=") open(index);
  else if (event.key === "-" || event.key === "−") close(index);
  else if (keys[event.key]) { const next = keys[event.key](index); if (next !== undefined) nodes[next].focus(); }
  else return;
  event.preventDefault();
});

// The recipe, the theme, the copy

document.querySelectorAll("#recipe li").forEach((line, at) => line.onclick = () => {
  const spans = nodes.map((node, index) => [index, ...(node.dataset.lines || "").split("-").map(Number)]);
  const around = spans.filter(([, first, last]) => first <= at + 1 && at + 1 <= last).sort((a, b) => (a[2] - a[1]) - (b[2] - b[1]));
  if (around.length) choose(around[0][0]);
});

const theme = document.getElementById("theme");
function dress(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  theme.setAttribute("aria-pressed", String(dark));
}
theme.onclick = () => dress(document.documentElement.dataset.theme !== "dark");

const implied = document.getElementById("implied");
implied.onclick = () => {
  implied.setAttribute("aria-pressed", String(picture.classList.toggle("apart")));
};

const copy = document.getElementById("copy");
copy.onclick = async () => {
  try {
    await navigator.clipboard.writeText(view.svg);
  } catch {
    const text = document.createElement("textarea");
    text.value = view.svg;
    document.body.append(text);
    text.select();
    document.execCommand("copy");
    text.remove();
  }
  copy.textContent = "Copied";
  setTimeout(() => { copy.textContent = "Copy as SVG"; }, 1500);
};

for (const button of document.querySelectorAll("[data-level]")) button.onclick = () => show(button.dataset.level);
const wanted = document.documentElement.dataset.theme;
dress(wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
show(data.first);
