// A copy button of a block of Python copies the blocks that it goes on from, too, so that what is pasted
// runs. Their numbers stand in the block's class: docs/site/copied.py finds them.
{
  const Usual = ClipboardJS;
  // Without the summaries of folded lines.
  const textOf = (block) => {
    const copy = block.querySelector("pre").cloneNode(true);
    copy.querySelectorAll("summary").forEach((summary) => summary.remove());
    return copy.textContent.trim();
  };
  const withAbove = (alone) => (trigger) => {
    const block = document.querySelector(trigger.getAttribute("data-clipboard-target")).closest(".highlight-python");
    const blocks = document.querySelectorAll(".highlight-python");
    const above = block?.className.match(/goes-on-from-([\d-]+)/)?.[1].split("-") ?? [];
    const texts = above.map((k) => textOf(blocks[k]));
    return [...texts, alone(trigger)].join("\n\n");
  };
  // sphinx-copybutton makes its buttons when the page has loaded, after this script, and keeps its own
  // function that reads a block to itself: only here can it be reached.
  window.ClipboardJS = class extends Usual {
    constructor(buttons, options) {
      super(buttons, { ...options, text: withAbove(options.text) });
    }
  };
}
