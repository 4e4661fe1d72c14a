// Lets the training step move: array by array, forward and then backward. Without this script the
// arrays are links, and the first one is described.
addEventListener("DOMContentLoaded", () => {
  const step = document.querySelector(".moving-step");
  if (!step) return;
  const bar = step.querySelector(".bar");
  const panels = step.querySelector(".panels");
  const links = [...step.querySelectorAll(".way a")];
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const SECONDS = 1.6;

  bar.insertAdjacentHTML("beforeend", `
    <span class="buttons">
      <button type="button" class="play"></button>
      <button type="button" aria-label="previous array">&#9664;</button>
      <button type="button" aria-label="next array">&#9654;</button>
    </span>`);
  const [play, back, on] = bar.querySelectorAll("button");

  let now = 0;
  let moves = false; // what the reader chose
  let watched = true; // whether it is on the screen
  let held = false; // while the pointer or the focus is within
  const show = (k) => {
    now = (k + links.length) % links.length;
    [...panels.children].forEach((panel, i) => panel.classList.toggle("now", i === now));
    links.forEach((link, i) => {
      link.classList.toggle("now", i === now);
      link.classList.toggle("later", moves && i > now);
    });
  };
  const choose = (motion) => {
    moves = motion;
    play.textContent = moves ? "Pause" : "Play";
    panels.setAttribute("aria-live", moves ? "off" : "polite");
    show(now);
  };
  const turn = (by) => {
    choose(false);
    show(now + by);
  };
  play.onclick = () => choose(!moves);
  back.onclick = () => turn(-1);
  on.onclick = () => turn(1);

  // Under the pointer or with the focus, an array says what it is; a click leads to its box.
  links.forEach((link, k) => {
    link.onpointerenter = (event) => event.pointerType === "mouse" && show(k);
    link.onfocus = () => link.matches(":focus-visible") && show(k);
  });
  const ways = [...step.querySelectorAll(".way"), panels];
  ways.forEach((way) => {
    way.addEventListener("pointerenter", (event) => { held = event.pointerType === "mouse"; });
    way.addEventListener("pointerleave", () => { held = false; });
    way.addEventListener("focusin", () => { held = true; });
    way.addEventListener("focusout", () => { held = false; });
  });
  // The theme turns pages with the arrow keys; within the step they turn arrays.
  addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !step.contains(event.target) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    turn(by);
    if (links.includes(event.target)) links[now].focus();
  }, true);

  new IntersectionObserver(([seen]) => { watched = seen.isIntersecting; }).observe(step);
  setInterval(() => moves && watched && !held && !document.hidden && show(now + 1), 1000 * SECONDS);
  choose(!still);
});
