"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const picture = document.getElementById("picture");
const tip = document.getElementById("tip");
const about = document.getElementById("about");
const search = document.getElementById("search");
const recipes = [...document.querySelectorAll(".recipe")];
const hint = about.innerHTML;
const SVG = "http://www.w3.org/2000/svg";
let view, nodes = [], order = [], edges = [], chosen = -1;

// The views are unpacked first; until then the first picture stands there by itself, as it does where that cannot be done

async function start() {
  const main = document.querySelector("main");
  if (!("DecompressionStream" in window)) {
    const said = document.getElementById("legend");
    said.textContent = "This browser is too old to open blocks or to show other levels (it has no DecompressionStream).";
    said.hidden = main.inert = false;
    return;
  }
  Object.assign(data, await unpacked(data.packed));
  document.querySelector("header").inert = main.inert = false;
  offer();
  restore();
  addEventListener("hashchange", restore);
}

// JSON in gzip in base64
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(json).json();
}

// Which view is shown

function show(key, focused = "") {
  if (picture.contains(document.activeElement)) document.activeElement.blur();  // while its view is still the shown one
  view = data.views[key];
  picture.innerHTML = view.picture;
  picture.querySelector("svg").setAttribute("role", "group");
  nodes = drawn("node");
  const references = drawn("reference");
  for (const path of view.named) nodes.push(references.find(reference => reference.dataset.id === path));
  view.nodes = nodes.map(node => node.dataset.id);
  edges = drawn("edge");
  for (const wire of view.implied) edges[wire].classList.add("implied");
  nodes.forEach((node, index) => {
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    node.setAttribute("aria-label", spoken(index));
    node.setAttribute("aria-pressed", "false");
    node.onclick = () => choose(index === chosen ? -1 : index);
    node.ondblclick = () => open(index);
    node.onmouseenter = event => point(index, event);
    node.onmousemove = event => place(event.clientX, event.clientY);
    node.onmouseleave = leave;
    node.onfocus = () => { if (node.matches(":focus-visible")) beside(index); };
    node.onblur = leave;
    if (view.opens[view.nodes[index]]) { node.setAttribute("aria-expanded", "false"); node.setAttribute("aria-keyshortcuts", "+"); sign(node, view.opens[view.nodes[index]], "+"); }
  });
  order = inOrder();
  for (const frame of drawn("frame")) {
    const target = view.closes[frame.dataset.id];
    if (target) sign(frame, target, "−");
  }
  for (const button of document.querySelectorAll("[data-level]"))
    button.setAttribute("aria-pressed", String(key === button.dataset.level));
  find(search.value);
  resize(size);
  dressed();
  document.dispatchEvent(new Event("shown"));
  const at = focused ? view.nodes.findIndex(path => path === focused || path.startsWith(focused + ".")) : -1;
  choose(-1);
  if (at >= 0) { nodes[at].focus(); choose(at); }
}

// What stands for the model: a detail repeats some of it from inside
function drawn(kind) { return [...picture.querySelectorAll(`.${kind}:not(.detail .${kind})`)]; }

// The nodes as data flows through them, upwards; so do keys go, and readers of screens
function inOrder() {
  const places = nodes.map((node, index) => ({ index, side: side(view.nodes[index]), area: node.getBBox() }));
  places.sort((a, b) => a.side - b.side || (b.area.y + b.area.height) - (a.area.y + a.area.height) || a.area.x - b.area.x);
  const after = drawn("node").pop().nextSibling;
  for (const { index } of places) if (nodes[index].matches(".node")) nodes[index].parentNode.insertBefore(nodes[index], after);
  return places.map(({ index }) => index);
}

// A sign at a corner of what can be opened or closed
function sign(thing, target, text) {
  const area = thing.querySelector("rect, circle, path").getBBox();
  const [x, y] = data.models ? [area.x + area.width, area.y + area.height] : [area.x, area.y];  // not where changes have theirs
  const made = document.createElementNS(SVG, "g");
  made.setAttribute("class", "sign");
  made.setAttribute("aria-hidden", "true");  // the keys + and −, and the buttons beside the picture, do the same
  made.dataset.sign = (text === "+" ? "open " : "close ") + thing.dataset.id;
  made.innerHTML = `<circle cx="${x}" cy="${y}" r="7"/><path d="M${x - 3.5} ${y}h7${text === "+" ? `m-3.5 -3.5v7` : ""}"/>`;
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

// Where two models are compared, paths say which one they are of

function side(path) { return data.sides.findLastIndex(one => path.startsWith(one)); }

function bare(path) { return path.slice(data.sides[side(path)].length); }

// A node, and what it is in the other model
function both(index) {
  const path = view.nodes[index];
  const pair = Object.entries(view.partners || {}).find(each => each.includes(path)) || [path];
  return pair.map(one => one === path ? index : view.nodes.indexOf(one));
}

// The changes that are shown at a path, with the numbers that they have in this picture
function changesAt(path) {
  return (view.changes || []).flatMap(({ change, places }, at) => places.includes(path) ? [{ number: at + 1, change: data.changes[change] }] : []);
}

// What is said about a node

function label(index) {
  const title = nodes[index].querySelector("title")?.textContent || bare(view.nodes[index]);
  const shown = nodes[index].querySelector("text")?.textContent || "";
  return title.startsWith(shown) ? title : `${shown} — ${title}`;
}

// All that is written in a node, in this order, so that it can be called by what is seen; and what else there is to say of it
function spoken(index) {
  const parts = label(index).split(" — "), shown = [...nodes[index].querySelectorAll("text")].map(text => text.textContent);
  const last = shown.pop(), said = last === undefined ? [] : [...shown, parts.find(part => part.startsWith(last)) || last];
  const words = text => text.replace(/ [—·] /g, " "), all = words(said.join(" — "));
  return [...said, ...parts.filter(part => !all.includes(words(part)))].join(" — ");
}

// Which file a node is written in, and from which line to which; of what has no place of its own, what holds it
function span(index) { return spanOf(nodes[index]); }

function spanOf(thing) {
  const { id, lines } = thing.dataset;
  if (lines) return [data.own[side(id)], ...lines.split("-").map(Number)];
  for (let path = id; path; path = path.slice(0, Math.max(0, path.lastIndexOf("."))))
    if (data.written[path]) return data.written[path];
  return null;
}

// Some lines of a model, in words
function written(model, spans) {
  return data.files.flatMap((file, at) => {
    const here = spans.filter(each => each[0] === at);
    if (!here.length) return [];
    const [first, last] = [Math.min(...here.map(each => each[1])), Math.max(...here.map(each => each[2]))];
    return [`${data.models && at === data.own[model] ? "" : file + ", "}${first === last ? `line ${first}` : `lines ${first}–${last}`}`];
  }).join("; ");
}

function told(index) {
  const path = view.nodes[index];
  const rows = [["path", bare(path)], ...Object.entries(data.facts[path] || {})];
  for (const one of both(index)) {
    const lines = span(one);
    if (lines) rows.push([data.models ? data.models[side(view.nodes[one])] : "written", written(side(view.nodes[one]), [lines])]);
  }
  for (const { number, change } of changesAt(path)) rows.push([`${change.sign} ${number}`, change.what]);
  return table(label(index), rows);
}

function table(title, rows) {
  const whole = document.createElement("div"), head = document.createElement("b"), table = document.createElement("table");
  head.textContent = title;
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

function beside(index) {
  const box = nodes[index].getBoundingClientRect();
  point(index, { clientX: box.right, clientY: box.top });
}

function place(x, y) {
  const area = tip.getBoundingClientRect(), right = picture.getBoundingClientRect().right;
  tip.style.left = Math.max(4, Math.min(x + 14, right - area.width - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - area.height - 8)) + "px";
}

function leave() { tip.hidden = true; mark(chosen); }

function mark(index) { markAll(index < 0 ? [] : both(index).map(span).filter(Boolean)); }

// Lets lines stand out, and be seen
function markAll(spans) {
  for (const line of document.querySelectorAll(".recipe .marked")) line.classList.remove("marked");
  for (const [file, first, last] of spans) {
    const recipe = recipes[file];
    for (let at = first; at <= last; at++) recipe.children[at - 1].classList.add("marked");
    const [top, bottom] = [recipe.children[first - 1].offsetTop, recipe.children[last - 1].offsetTop + 18];
    if (top < recipe.scrollTop || bottom > recipe.scrollTop + recipe.clientHeight) recipe.scrollTop = top - 18;
  }
}

// The way of the data through a node

function reached(starts, forwards) {
  const found = new Set(), waiting = [...starts];
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
  for (const thing of picture.querySelectorAll(".chosen, .near, .up, .down, .dim, .lit"))
    thing.classList.remove("chosen", "near", "up", "down", "dim", "lit");
  nodes.forEach((node, at) => node.setAttribute("aria-pressed", String(at === index)));
  tip.hidden = true;
  mark(index);
  if (index < 0) about.innerHTML = hint;
  else follow(index);
  keep();
  document.dispatchEvent(new Event("chosen"));
}

function follow(index) {
  const starts = both(index), up = reached(starts, false), down = reached(starts, true);
  const lit = new Set();
  for (const one of starts) nodes[one].classList.add("chosen");
  nodes.forEach((node, at) => {
    if (starts.includes(at)) return;
    node.classList.toggle("up", up.has(at));
    node.classList.toggle("down", down.has(at) && !up.has(at));
    node.classList.toggle("dim", !up.has(at) && !down.has(at));
  });
  for (const [source, target, wires] of view.links) {
    const way = starts.includes(target) || (up.has(target) && up.has(source)) ? "up"
      : starts.includes(source) || (down.has(source) && down.has(target)) ? "down" : "";
    const near = starts.includes(source) || starts.includes(target);
    if (near) nodes[starts.includes(source) ? target : source].classList.add("near");
    if (way) for (const wire of wires) { edges[wire].classList.add(way, ...(near ? ["near"] : [])); lit.add(wire); }
  }
  edges.forEach((edge, at) => edge.classList.toggle("dim", !lit.has(at)));
  about.replaceChildren(told(index));
  for (const [text, target, path] of [["Open", view.opens[view.nodes[index]], view.nodes[index]],
    ["Close", view.closes[shutting(view.nodes[index])], shutting(view.nodes[index])]]) {
    if (!target) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${text} ${bare(path)}`;
    button.onclick = () => show(target, path);
    about.append(button);
  }
  about.append(...tools(index));
}

// Search

function find(text) {
  const wanted = text.trim().toLowerCase();
  let count = 0;
  nodes.forEach((node, index) => {
    const hit = wanted !== "" && (label(index) + " " + bare(view.nodes[index])).toLowerCase().includes(wanted);
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

const along = index => view.links.find(([source]) => source === index)?.[1];
const back = index => view.links.find(([, target]) => target === index)?.[0];
const following = index => order[(order.indexOf(index) + 1) % order.length];
const preceding = index => order[(order.indexOf(index) + order.length - 1) % order.length];
const ways = {
  up: { ArrowUp: along, ArrowDown: back, ArrowRight: following, ArrowLeft: preceding },
  right: { ArrowRight: along, ArrowLeft: back, ArrowDown: following, ArrowUp: preceding },
};

document.addEventListener("keydown", event => {
  if (event.target.matches?.("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const index = nodes.indexOf(event.target.closest?.(".node, .reference"));
  if (event.key === "/") search.focus();
  else if (event.key === "Escape") choose(-1);
  else if (index < 0) return;
  else if (event.key === "Enter" || event.key === " ") choose(index === chosen ? -1 : index);
  else if (event.key === "+" || event.key === "=") open(index);
  else if (event.key === "-" || event.key === "−") close(index);
  else if (ways.up[event.key]) { const next = ways[data.direction || "up"][event.key](index); if (next !== undefined) nodes[next].focus(); }
  else return;
  event.preventDefault();
});

// The recipe

recipes.forEach((recipe, number) => [...recipe.children].forEach((line, at) => line.onclick = () => {
  const spans = nodes.map((node, index) => [index, ...(span(index) || [-1])]).filter(([, file]) => file === number);
  const around = spans.filter(([, , first, last]) => first <= at + 1 && at + 1 <= last).sort((a, b) => (a[3] - a[2]) - (b[3] - b[2]));
  if (around.length) { choose(around[0][0]); nodes[chosen].scrollIntoView({ block: "nearest", inline: "nearest" }); }
}));
