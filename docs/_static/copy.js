// A block of Python goes on from the blocks above it on its page. So a copy button copies them too,
// and what is pasted runs. A quotation of the package stands for itself.
{
  const Usual = ClipboardJS;
  const isQuotation = (block) => {
    let above = block.previousSibling;
    while (above?.nodeType === Node.TEXT_NODE) above = above.previousSibling;
    return above?.nodeType === Node.COMMENT_NODE && above.data.includes("source:");
  };
  const withAbove = (alone) => (trigger) => {
    const target = document.querySelector(trigger.getAttribute("data-clipboard-target"));
    const block = target.closest(".highlight-python");
    if (!block || isQuotation(block)) return alone(trigger);
    const blocks = [...document.querySelectorAll(".highlight-python")].filter((each) => !isQuotation(each));
    const above = blocks.slice(0, blocks.indexOf(block)).map((each) => each.querySelector("pre").textContent);
    return [...above, alone(trigger)].join("\n");
  };
  // sphinx-copybutton makes its buttons when the page has loaded, after this script, and keeps its own
  // function that reads a block to itself: only here can it be reached.
  window.ClipboardJS = class extends Usual {
    constructor(buttons, options) {
      super(buttons, { ...options, text: withAbove(options.text) });
    }
  };
}
