
// How the picture looks, by the keys of a figure sheet: what colors tell, what is left out, what stays bright

const LEFT_OUT = { params: ".params", shapes: ".shape", names: ".name" };
const color = document.getElementById("color"), bright = document.getElementById("highlight");
let left = 0;
const checks = [...document.querySelectorAll("#figure input[type=checkbox]")];

// The choices of this model; two models that are compared have colors of their own
function offer() {
  for (const part of document.querySelectorAll("#figure .single")) part.hidden = Boolean(data.models);
  if (data.models) return;
  const told = name => name === "kind" || Object.values(data.views).some(({ shades }) => /[1-9]/.test(shades[name] || ""));
  color.append(...["kind", "params", "flops", "cache", "trainable"].filter(told).map(name => new Option(name, name)));
  color.value = data.color;
  bright.value = data.highlight.join(", ");
}

for (const one of [color, bright, gone, merged, ...checks]) one.oninput = () => { dressed(); keep(); };

function shown(key) { return checks.find(check => check.name === key).checked; }

function words(field) { return field.value.split(",").map(word => word.trim()).filter(Boolean); }

function dressed() {
  for (const [key, css] of Object.entries(LEFT_OUT))
    for (const text of picture.querySelectorAll(css)) {
      text.dataset.whole ??= text.textContent;  // beside a shape there may stand a dropout
      text.textContent = shown(key) ? text.dataset.whole : text.dataset.whole.split(" · ").slice(1).join(" · ");
    }
  if (!data.models) single();
  left = data.models ? 0 : leaveOut();
  if (!data.models) say(mergeAll());
  legend();
  chart();
}

// Tells what cannot be done, beside what else is told
function say(said) {
  const hits = document.getElementById("hits");
  if (said.length) hits.textContent = [words(gone).length ? hits.textContent : "", ...said].filter(Boolean).join("; ");
  else if (boxes().length && !words(gone).length) hits.textContent = "";
}

// What only the page of one model has
function single() {
  const { shades } = view, known = color.value in shades || color.value === "kind";
  for (const option of color.options) option.disabled = option.value !== "kind" && !(option.value in shades);
  picture.classList.toggle("shaded", color.value !== "kind");  // a legend in the picture explains its first colors
  const tones = known && color.value !== "kind" ? shades[color.value] : "";
  nodes.filter(node => node.matches(".node")).slice(-shades.params.length).forEach((box, at) => {  // boxes come after circles
    box.classList.remove("shade", ...[0, 1, 2, 3, 4].map(step => "shade" + step));
    const tone = tones[at]?.trim();
    if (tone) box.classList.add("shade", "shade" + tone);
  });
  const absent = data.optional.filter(name => !picture.querySelector(`.node[data-id="${CSS.escape(name)}"]`));
  for (const thing of picture.querySelectorAll(".reference, .edge")) {
    const named = [thing.dataset.id, thing.dataset.a].some(name => absent.includes(name));
    thing.classList.toggle("absent", named && !shown("optional_inputs"));
  }
  const held = words(bright), lit = path => held.some(one => path === one || path?.startsWith(one + "."));
  for (const thing of picture.querySelectorAll(".node, .reference"))
    thing.classList.toggle("faded", held.length > 0 && ![thing.dataset.id, ...(thing.dataset.merged || "").split(" ")].some(lit));
  for (const edge of edges) edge.classList.toggle("faded", held.length > 0 && !lit(edge.dataset.a) && !lit(edge.dataset.b));
}

// What the dots and the colors mean, while they are shown

function legend() {
  const said = document.getElementById("legend"), dotted = view.implied.length, apart = picture.classList.contains("apart");
  const parts = apart ? [`<i class="dotted"></i> implied by the order: the recipe writes nothing (${dotted} wires)`, `<i></i> written in the recipe (${edges.length - dotted})`] : [];
  said.innerHTML = parts.map(part => `<span>${part}</span>`).join("");
  if (!data.models && (shown("legend") || color.value !== "kind")) said.append(...meanings());
  if (left) said.append(swatch("", `${left} ${left === 1 ? "block" : "blocks"} not drawn`));
  said.hidden = !said.childNodes.length;
}

function meanings() {
  const { kind, trainable, share, of } = data.legend, told = color.value;
  if (told !== "kind" && !(told in view.shades)) return [swatch("", `blocks are open here: ${told} is told of whole blocks only`)];
  if (told === "kind") return kind.filter(([hue]) => picture.querySelector(".k-" + hue + ".node")).map(([hue, said]) => swatch("k-" + hue, said));
  if (told === "trainable") return trainable.map(([step, said]) => swatch("shade" + step, said)).filter(one => picture.querySelector("." + one.dataset.of));
  return share.map((said, step) => swatch("shade" + step, step ? said : `share of the ${of[told]}: ${said}`));
}

function swatch(name, said) {
  const entry = document.createElement("span");
  entry.dataset.of = name;
  entry.textContent = said;
  if (!name) return entry;
  const like = picture.querySelector(`.${name} > .s`), small = document.createElementNS(SVG, "svg");
  small.innerHTML = `<g class="${name}"><rect class="s" x="2" y="2" width="12" height="12" rx="3" fill="${like?.getAttribute("fill") || "none"}" stroke="${like?.getAttribute("stroke") || "none"}"/></g>`;
  entry.prepend(small);
  return entry;
}

const theme = document.getElementById("theme");
function dress(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  theme.setAttribute("aria-pressed", String(dark));
}
theme.onclick = () => dress(document.documentElement.dataset.theme !== "dark");

const implied = document.getElementById("implied");
implied.onclick = () => {
  implied.setAttribute("aria-pressed", String(picture.classList.toggle("apart")));
  legend();
};

const options = document.getElementById("figure");
document.addEventListener("pointerdown", event => { if (!options.contains(event.target)) options.open = false; });
options.onkeydown = event => { if (event.key === "Escape") { options.open = false; options.querySelector("summary").focus(); } };

// What is chosen here, as keys with the values that differ from what is usual

function* sheet() {
  yield ["level", view.level];
  if (view.opened?.length) yield ["open", view.opened];
  yield* look("kind", []);
}

function* look(usual, lit) {
  if (color.value !== usual) yield ["color", color.value];
  for (const { name, checked, defaultChecked } of checks) if (checked !== defaultChecked) yield [name, String(checked)];
  if (String(words(bright)) !== String(lit)) yield ["highlight", words(bright)];
  if (words(gone).length) yield ["hide", words(gone)];
  if (boxes().length) yield ["merge", Object.fromEntries(boxes())];
}

// The link to what is seen: the view, the block, and what differs from the look of the page when it is opened

function link() {
  const path = chosen < 0 ? "" : "/" + view.nodes[chosen], rest = data.models ? [] : [...look(data.color, data.highlight)];
  const key = Object.keys(data.views).find(key => data.views[key] === view);
  return "#" + encodeURI(key + path + (rest.length ? "?" + rest.map(([key, value]) => `${key}=${key === "merge" ? merged.value.trim().replaceAll("&", "%26") : value}`).join("&") : ""));
}

function keep() {
  try { history.replaceState(null, "", link()); } catch { /* in a frame without an address of its own */ }
}

// Shows what the address asks for; of a block that is not there, what holds it
function restore() {
  const [where, asked = ""] = decoded(location.hash.slice(1)).split("?"), slash = where.indexOf("/");
  const key = slash < 0 ? where : where.slice(0, slash), there = key in data.views;
  const path = there ? where.slice(key.length + 1) : where, values = Object.fromEntries(asked.split("&").map(pair => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1).replaceAll("%26", "&")]));
  if (!data.models) {
    color.value = [...color.options].some(option => option.value === values.color) ? values.color : data.color;
    for (const check of checks) check.checked = values[check.name] ? values[check.name] === "true" : check.defaultChecked;
    gone.value = (values.hide || "").split(",").join(", ");
    merged.value = values.merge || "";
    bright.value = (values.highlight ?? String(data.highlight)).split(",").join(", ");
  }
  show(there ? key : data.first);
  for (let tried = path; tried && chosen < 0; tried = tried.slice(0, Math.max(0, tried.lastIndexOf(".")))) {
    const at = view.nodes.findIndex(one => one === tried || one.startsWith(tried + "."));
    if (at >= 0) { nodes[at].scrollIntoView({ block: "nearest", inline: "nearest" }); choose(at); }
  }
  if (path && chosen < 0) document.getElementById("hits").textContent = `no block ${path} here`;
}

function decoded(text) {
  try { return decodeURI(text); } catch { return text; }
}

// Buttons beside what is said of a block
function tools(index) {
  const path = view.nodes[index], here = words(bright), found = [made("Copy link", button => copyText(location.href, button))];
  if (data.models || !nodes[index].matches(".node:not(.k-io)")) return found;
  const without = here.filter(one => one !== path);
  found.push(made("Hide", () => { gone.value = [...words(gone), path].join(", "); choose(-1); gone.oninput(); }));
  found.push(made(without.length < here.length ? "Highlight no more" : "Highlight", () => {
    bright.value = (without.length < here.length ? without : [...here, path]).join(", ");
    bright.oninput();
    choose(index);
  }));
  return found;
}

function made(text, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.onclick = () => act(button);
  return button;
}

// Copies and files

async function copyText(given, button) {
  try {
    await navigator.clipboard.writeText(given);
  } catch {
    const text = document.createElement("textarea");
    text.value = given;
    document.body.append(text);
    text.select();
    document.execCommand("copy");
    text.remove();
  }
  const usual = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = usual; }, 1500);
}

document.getElementById("copy").onclick = event => copyText(view.copied || view.picture, event.target);
document.getElementById("sheet").onclick = event =>
  copyText([...sheet()].map(([key, value]) => `${key}: ${inYaml(value)}\n`).join(""), event.target);

function inYaml(value) {
  if (Array.isArray(value)) return `[${value.join(", ")}]`;
  return typeof value === "object" ? `{${Object.entries(value).map(([title, paths]) => `${JSON.stringify(title)}: ${inYaml(paths)}`).join(", ")}}` : value;
}

// The picture as it is seen: colors, what is left out and what fades are written into it
function seen() {
  const svg = drawing(), copy = svg.cloneNode(true), things = [svg, ...svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  const gone = copies.filter((one, at) => one.matches("style, .sign") || getComputedStyle(things[at]).display === "none" && one.matches("g, text"));
  copies.forEach((one, at) => {
    const style = getComputedStyle(things[at]), names = one.matches("g") ? ["opacity"] : one.matches("rect, circle, path, polygon, text") ? ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity"] : [];
    for (const name of names) {
      const value = coded(style.getPropertyValue(name)).replaceAll("px", "");
      if (!["opacity", "stroke-dasharray", "stroke"].includes(name) || one.hasAttribute(name) || !["1", "none"].includes(value)) one.setAttribute(name, value);
    }
    if (!one.hasAttribute("stroke")) for (const name of ["stroke-width", "stroke-dasharray"]) one.removeAttribute(name);
    for (const name of ["tabindex", "role", "style", "aria-pressed", "aria-expanded", "aria-keyshortcuts", "aria-label", "data-whole"])
      if (one !== copy || name === "style") one.removeAttribute(name);
  });
  for (const one of gone) one.remove();
  const { width, height } = svg.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("role", "img");
  return new XMLSerializer().serializeToString(copy) + "\n";
}

// A color as every program reads it; mixed ones are told by shares of 1
function coded(value) {
  const [, kind, parts] = value.match(/^(rgb|color)\((?:srgb )?([\d., ]+)\)$/) || [];
  if (!kind) return value;
  const bytes = parts.split(/[, ]+/).map(part => Math.round(Number(part) * (kind === "rgb" ? 1 : 255)));
  return "#" + bytes.map(byte => byte.toString(16).padStart(2, "0")).join("").toUpperCase();
}

function save(content, ending) {
  const anchor = document.createElement("a"), name = `${document.title} ${Object.keys(data.views).find(key => data.views[key] === view)}`;
  anchor.download = name.replace(/[^\p{L}\p{N}._+]+/gu, "-") + ending;
  anchor.href = URL.createObjectURL(content);
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10000);
}

document.getElementById("svg").onclick = () => save(new Blob([seen()], { type: "image/svg+xml" }), ".svg");

// At twice its natural size, as the command writes it
document.getElementById("png").onclick = async () => {
  const { width, height } = drawing().viewBox.baseVal, image = new Image(), canvas = document.createElement("canvas");
  image.src = URL.createObjectURL(new Blob([seen()], { type: "image/svg+xml" }));
  await image.decode();
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob(content => save(content, ".png"));
};

for (const button of document.querySelectorAll("[data-level]")) button.onclick = () => show(button.dataset.level);
const wanted = document.documentElement.dataset.theme;
dress(wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
