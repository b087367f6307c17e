
// How large the picture is: all of it in its place, or by a factor; then a small map says which part is seen

const map = document.getElementById("map"), MOST = 8, LEAST = 0.1, MAP = 160;
let size = 0;

function drawing() { return picture.querySelector("svg"); }

function factor() { return drawing().getBoundingClientRect().width / drawing().viewBox.baseVal.width; }

// As large as there is room for, but no larger than it was drawn
function fitting() {
  const { width, height } = drawing().viewBox.baseVal, style = getComputedStyle(picture);
  drawing().style.width = drawing().style.height = "0";  // so that no scroll bars take room
  const high = parseFloat(style.maxHeight) || picture.clientHeight, edge = 2 * parseFloat(style.paddingTop);
  return Math.min(1, (picture.clientWidth - edge) / width, (high - edge) / height);
}

function resize(wanted) {
  size = wanted;
  const scale = wanted || fitting(), { width, height } = drawing().viewBox.baseVal;
  drawing().style.width = width * scale + "px";
  drawing().style.height = height * scale + "px";
  document.getElementById("fit").setAttribute("aria-pressed", String(!wanted));
  frame();
}

// By a factor, while what is at a point of the window stays there
function grow(by, x, y) {
  const place = picture.getBoundingClientRect(), before = drawing().getBoundingClientRect();
  x ??= place.left + place.width / 2;
  y ??= place.top + place.height / 2;
  const [across, down] = [(x - before.left) / before.width, (y - before.top) / before.height];
  resize(Math.min(MOST, Math.max(LEAST, factor() * by)));
  const after = drawing().getBoundingClientRect();
  picture.scrollBy(after.left + across * after.width - x, after.top + down * after.height - y);
}

document.getElementById("larger").onclick = () => grow(1.25);
document.getElementById("smaller").onclick = () => grow(0.8);
document.getElementById("fit").onclick = () => resize(0);
new ResizeObserver(() => { if (view) resize(size); }).observe(picture);

// A wheel with Ctrl, as which touchpads report a pinch
picture.addEventListener("wheel", event => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  grow(Math.exp(Math.max(-0.2, Math.min(0.2, -event.deltaY / 100))), event.clientX, event.clientY);
}, { passive: false });

// Two fingers; one finger scrolls, as it does everywhere
let pinched = null;

function pinch([one, other]) {
  const [x, y] = [(one.clientX + other.clientX) / 2, (one.clientY + other.clientY) / 2];
  return { x, y, apart: Math.max(1, Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY)) };
}

picture.addEventListener("touchstart", event => { pinched = event.touches.length === 2 ? pinch(event.touches) : null; }, { passive: true });
picture.addEventListener("touchend", () => { pinched = null; });
picture.addEventListener("touchmove", event => {
  if (!pinched || event.touches.length !== 2) return;
  event.preventDefault();
  const now = pinch(event.touches);
  picture.scrollBy(pinched.x - now.x, pinched.y - now.y);
  grow(now.apart / pinched.apart, now.x, now.y);
  pinched = now;
}, { passive: false });

// A mouse drags; a click that ends a drag chooses nothing
let held = null;

picture.addEventListener("pointerdown", event => {
  if (event.pointerType === "mouse" && event.button === 0 && overflows()) held = { x: event.clientX, y: event.clientY, moved: false };
});
picture.addEventListener("pointermove", event => {
  if (!held || !(event.buttons & 1)) { held = null; return; }
  const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
  if (!held.moved && Math.hypot(dx, dy) < 4) return;
  if (!held.moved) { picture.setPointerCapture(event.pointerId); leave(); }
  picture.scrollBy(-dx, -dy);
  held = { x: event.clientX, y: event.clientY, moved: true };
});
picture.addEventListener("click", event => {
  if (held?.moved) event.stopPropagation();
  held = null;
}, { capture: true });

// The map: every frame and block, and the part that is seen

function overflows() { return picture.scrollWidth > picture.clientWidth + 1 || picture.scrollHeight > picture.clientHeight + 1; }

function chart() {
  const { width, height } = drawing().viewBox.baseVal, scale = MAP / Math.max(width, height);
  map.setAttribute("viewBox", `0 0 ${width} ${height}`);
  map.style.width = width * scale + "px";
  map.style.height = height * scale + "px";
  map.replaceChildren(...[...picture.querySelectorAll(".frame, .node")].map(thing => {
    const small = thing.cloneNode();
    for (const name of ["tabindex", "role", "aria-label", "data-id"]) small.removeAttribute(name);
    small.setAttribute("class", thing.getAttribute("class").replace("node", ""));
    small.append(thing.querySelector(".s").cloneNode());
    return small;
  }), document.createElementNS(SVG, "rect"));
  map.lastChild.setAttribute("class", "seen");
  frame();
}

function frame() {
  map.toggleAttribute("hidden", !overflows());
  picture.classList.toggle("large", overflows());
  if (map.hasAttribute("hidden") || !map.lastChild) return;
  const place = picture.getBoundingClientRect(), all = drawing().getBoundingClientRect(), scale = factor();
  const [left, top] = [Math.max(0, place.left - all.left), Math.max(0, place.top - all.top)];
  const [right, bottom] = [Math.min(all.width, place.right - all.left), Math.min(all.height, place.bottom - all.top)];
  for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top }))
    map.lastChild.setAttribute(name, Math.max(0, value / scale));
}

picture.addEventListener("scroll", frame, { passive: true });

map.onpointerdown = event => { map.setPointerCapture(event.pointerId); map.onpointermove(event); };
map.onpointermove = event => {
  if (!event.buttons) return;
  const small = map.getBoundingClientRect(), all = drawing().getBoundingClientRect(), place = picture.getBoundingClientRect();
  const [x, y] = [(event.clientX - small.left) / small.width, (event.clientY - small.top) / small.height];
  picture.scrollBy(all.left + x * all.width - place.left - place.width / 2, all.top + y * all.height - place.top - place.height / 2);
};
