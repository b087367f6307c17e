"use strict";
// One step at a time: arrow keys, Space, Home and End, the buttons, or a click at either half of the picture.
const steps = [...document.querySelectorAll("figure")];
let shown = 0;

function show(number) {
  shown = Math.min(Math.max(number, 0), steps.length - 1);
  steps.forEach((step, index) => { step.hidden = index !== shown; });
  document.getElementById("back").disabled = shown === 0;
  document.getElementById("on").disabled = shown === steps.length - 1;
  history.replaceState(null, "", `#${shown + 1}`);
}

const KEYS = {
  ArrowRight: () => shown + 1, ArrowDown: () => shown + 1, PageDown: () => shown + 1, " ": () => shown + 1,
  ArrowLeft: () => shown - 1, ArrowUp: () => shown - 1, PageUp: () => shown - 1,
  Home: () => 0, End: () => steps.length - 1,
};
document.addEventListener("keydown", (event) => {
  const target = event.target instanceof HTMLButtonElement && event.key === " ";
  if (KEYS[event.key] && !target && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault();
    show(KEYS[event.key]());
  }
});
document.getElementById("back").addEventListener("click", () => show(shown - 1));
document.getElementById("on").addEventListener("click", () => show(shown + 1));
document.querySelector("main").addEventListener("click", (event) => show(shown + (event.clientX < innerWidth / 2 ? -1 : 1)));
window.addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1 || 0));
document.querySelector("nav").hidden = false;
show(Number(location.hash.slice(1)) - 1 || 0);
