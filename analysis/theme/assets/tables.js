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

  // Cells of a table that becomes cards on a narrow screen carry the name of their column; as blocks
  // they are no table to a screen reader any more, so it is told.
  const label = (box) => {
    for (const table of box.querySelectorAll("table")) {
      if (!table.tHead) continue;
      const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
      table.setAttribute("role", "table");
      for (const row of table.rows) row.setAttribute("role", "row");
      for (const cell of table.tHead.rows[0].cells) cell.setAttribute("role", "columnheader");
      for (const body of table.tBodies) {
        body.setAttribute("role", "rowgroup");
        for (const row of body.rows) {
          [...row.cells].forEach((cell, column) => {
            cell.setAttribute("role", "cell");
            cell.dataset.label = names[column] || "";
          });
        }
      }
      table.tHead.setAttribute("role", "rowgroup");
    }
    box.classList.add("labelled");
  };

  // After the theme has wrapped the tables, and again whenever a wrapper changes its width.
  addEventListener("load", () => {
    document.querySelectorAll(".cards").forEach(label);
    const sizes = new ResizeObserver((entries) => entries.forEach((e) => mark(e.target)));
    document.querySelectorAll(".md-typeset__scrollwrap").forEach((box) => sizes.observe(box));
  });
})();
