// A table that is wider than the window scrolls inside the wrapper that the theme puts around it.
// While it does, the keyboard can reach the wrapper, which is named by the heading above it.
(() => {
  "use strict";

  const heading = (box) => {
    let found = null;
    for (const each of document.querySelectorAll("article :is(h1, h2, h3, h4)")) {
      const before = each.compareDocumentPosition(box) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (before) found = each;
    }
    return found ? found.textContent.replace("\u00b6", "").trim() : document.title;
  };

  const mark = (box) => {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", `Table: ${heading(box)}`);
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  };

  // After the theme has wrapped the tables, and again whenever a wrapper changes its width.
  addEventListener("load", () => {
    const sizes = new ResizeObserver((entries) => entries.forEach((e) => mark(e.target)));
    document.querySelectorAll(".md-typeset__scrollwrap").forEach((box) => sizes.observe(box));
  });
})();
