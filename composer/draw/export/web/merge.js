
// Several blocks as one box, drawn over their places: the other blocks keep theirs, and wires end at its border

const merged = document.getElementById("merge");

// By the title of each box, the blocks that it stands for: `MLP=layers.ffn; Ends=norm,head`
function boxes() {
  return merged.value.split(";").map(part => part.split("=")).filter(([title, paths]) => title.trim() && paths?.trim())
    .map(([title, paths]) => [title.trim(), paths.split(",").map(path => path.trim()).filter(Boolean)]);
}

// Draws the boxes that are wanted; returns why some cannot be
function mergeAll() {
  for (const one of picture.querySelectorAll(".merged")) one.remove();
  for (const one of picture.querySelectorAll(".within")) one.classList.remove("within");
  return boxes().flatMap(([title, paths]) => together(title, paths));
}

function together(title, paths) {
  const unknown = paths.filter(path => !view.nodes.some(one => lies(one, [path])));
  if (unknown.length) return [`no block ${unknown.join(", ")} here`];
  const drawn = [...picture.querySelectorAll(".node:not(.gone)")], members = drawn.filter(node => lies(node.dataset.id, paths));
  if (!members.length) return [];
  const area = around(members.map(node => node.querySelector(".s").getBBox()));
  const between = drawn.find(node => !members.includes(node) && overlap(area, node.querySelector(".s").getBBox()));
  if (between) return [`${between.dataset.id} stands between the blocks of ${title}`];
  const frames = [...picture.querySelectorAll(".frame")].filter(frame => !lies(frame.dataset.id, paths));
  const apart = frames.some(frame => { const border = frame.querySelector("rect").getBBox(); return overlap(area, border) && !holds(border, area); });
  if (apart) return [`the blocks of ${title} do not stand in the same frame`];
  const read = new Set();
  for (const edge of [...edges].sort((a, b) => b.matches(".e-main") - a.matches(".e-main"))) {
    const from = lies(edge.dataset.a, paths), to = lies(edge.dataset.b, paths);
    if (to && (from || read.has(edge.dataset.a))) edge.classList.add("within");
    else if (to) read.add(edge.dataset.a);
  }
  for (const text of picture.querySelectorAll(".shape")) if (overlap(area, text.getBBox())) text.classList.add("within");
  for (const frame of picture.querySelectorAll(".frame")) if (lies(frame.dataset.id, paths)) frame.classList.add("within");
  for (const node of members) node.classList.add("within");
  const like = members.find(node => !node.matches(".k-norm, .k-merge, .k-io")) || members[0], last = members[0];
  const box = document.createElementNS(SVG, "g"), { x, y, width, height } = area;
  box.setAttribute("class", `merged ${[...like.classList].find(name => name.startsWith("k-")) || ""}`);
  box.dataset.id = title;
  box.dataset.merged = members.map(node => node.dataset.id).join(" ");
  box.innerHTML = `<rect class="s" x="${x}" y="${y}" width="${width}" height="${height}" rx="7"/><text class="t" x="${x + width / 2}" y="${y + height / 2 + 4.5}" text-anchor="middle" font-size="13" font-weight="700"></text>`;
  for (const name of ["fill", "stroke", "stroke-width"]) box.firstChild.setAttribute(name, like.querySelector(".s").getAttribute(name) || "1.4");
  const words = box.querySelector("text"), own = like.querySelector("text");
  words.textContent = title;
  const sum = shown("params") ? heldTogether(members, paths) : "";
  if (sum) {
    const count = words.cloneNode();
    for (const [name, value] of Object.entries({ class: "m params", x: x + width - 9, y: y + height / 2 + 3.5, "text-anchor": "end", "font-size": 10, "font-weight": 400 })) count.setAttribute(name, value);
    count.textContent = sum;
    box.append(count);
  }
  if (own) for (const name of ["font-family", "fill"]) if (own.getAttribute(name)) words.setAttribute(name, own.getAttribute(name));
  last.parentNode.append(box);
  return [];
}

// How many parameters blocks have together, `4.72 M`; nothing where a box tells none, since passes have other numbers
function heldTogether(members, paths) {
  const own = path => Number((data.facts[path]?.parameters || "0").replaceAll(",", "")) || 0;
  if (members.some(node => own(node.dataset.id) && !node.querySelector(".params"))) return "";
  let count = paths.filter(path => !lies(path, paths.filter(other => other !== path))).reduce((sum, path) => sum + own(path), 0), unit = 0;
  if (count < 1000) return count ? String(count) : "";
  for (; count >= 999.5; unit++) count /= 1000;
  return `${count.toPrecision(3)} ${" KMBT"[unit]}`;
}

function around(areas) {
  const x = Math.min(...areas.map(one => one.x)), y = Math.min(...areas.map(one => one.y));
  return { x, y, width: Math.max(...areas.map(one => one.x + one.width)) - x, height: Math.max(...areas.map(one => one.y + one.height)) - y };
}

function overlap(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

function holds(a, b) {
  return a.x <= b.x && a.y <= b.y && a.x + a.width >= b.x + b.width && a.y + a.height >= b.y + b.height;
}
