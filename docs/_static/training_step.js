// Shows one step of the page at a time. Without this script all of them stand below each other.
addEventListener("DOMContentLoaded", () => {
  const steps = [...document.querySelectorAll("section > section")].filter(
    (section) => section.querySelector(":scope > .arrays"),
  );
  if (!steps.length) return;
  const ways = [...new Set(steps.map((step) => step.parentElement))];
  const page = ways[0].parentElement;
  const title = (step) => step.querySelector("h3").firstChild.textContent.trim();
  steps.forEach((step) => step.classList.add("step"));
  ways.forEach((way) => way.classList.add("way"));

  const stepper = document.createElement("nav");
  stepper.className = "stepper";
  stepper.setAttribute("aria-label", "steps");
  stepper.innerHTML =
    '<div class="line"><button type="button" aria-label="previous step">&#9664;</button>' +
    `<input type="range" min="1" max="${steps.length}" value="1" aria-label="step">` +
    '<button type="button" aria-label="next step">&#9654;</button><output></output></div>' +
    '<div class="boxes"></div>';
  const [back, on] = stepper.querySelectorAll("button");
  const slider = stepper.querySelector("input");
  const output = stepper.querySelector("output");
  const boxes = stepper.querySelector(".boxes");

  // Forward from left to right, and below it backward from right to left: a box above its answer.
  const ahead = steps.filter((step) => step.parentElement === ways[0]).length;
  boxes.style.gridTemplateColumns = `repeat(${ahead}, 1fr)`;
  const links = steps.map((step, k) => {
    const link = document.createElement("a");
    link.href = `#${step.id}`;
    link.title = title(step);
    link.innerHTML = `<span>${k + 1}</span>`;
    link.style.gridRow = k < ahead ? 1 : 2;
    link.style.gridColumn = k < ahead ? k + 1 : Math.max(2 * ahead - k, 1);
    boxes.append(link);
    return link;
  });
  page.insertBefore(stepper, ways[0]);
  page.classList.add("stepped");

  let now = 0;
  const show = (k, scroll) => {
    now = Math.min(Math.max(k, 0), steps.length - 1);
    steps.forEach((step, i) => step.classList.toggle("now", i === now));
    ways.forEach((way) => way.classList.toggle("now", way === steps[now].parentElement));
    links.forEach((link, i) => link.classList.toggle("now", i === now));
    slider.value = now + 1;
    slider.setAttribute("aria-valuetext", title(steps[now]));
    output.textContent = `${now + 1} of ${steps.length}`;
    back.disabled = now === 0;
    on.disabled = now === steps.length - 1;
    history.replaceState(null, "", scroll ? `#${steps[now].id}` : location.href);
    const { top, bottom } = stepper.getBoundingClientRect();
    if (scroll && (top < 0 || bottom > innerHeight / 2)) stepper.scrollIntoView();
  };
  const named = () => steps.findIndex((step) => `#${step.id}` === decodeURIComponent(location.hash));
  back.onclick = () => show(now - 1, true);
  on.onclick = () => show(now + 1, true);
  slider.oninput = () => show(slider.value - 1, true);
  addEventListener("hashchange", () => named() >= 0 && show(named(), true));
  // The theme turns pages with the arrow keys; here they turn steps.
  addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const typing = event.target.matches?.("input:not([type=range]), textarea, select");
    if (!by || typing || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    show(now + by, true);
  }, true);
  show(Math.max(named(), 0), false);
});
