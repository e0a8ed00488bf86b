/* The board of verdicts: filters by verdict, kind and study, a search word, and sorting by column.
   Without this script the whole table stands there, in the order the report gives it. */
(function () {
  "use strict";
  const FILTERED = ["Verdict", "Kind", "Study"];

  function setUp(board) {
    const table = board.querySelector("table");
    if (!table || !table.tBodies.length) return;
    const heads = Array.from(table.tHead.rows[0].cells);
    const rows = Array.from(table.tBodies[0].rows);
    const text = (row, column) => row.cells[column].textContent.trim();
    const bar = document.createElement("div");
    bar.className = "board-filters";
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    const chosen = new Map();
    // On a narrow screen the first ones are enough to begin with.
    let most = matchMedia("(max-width: 44.9375em)").matches ? 40 : Infinity;
    const more = document.createElement("button");
    more.type = "button";
    more.className = "board-more";

    function show() {
      let shown = 0;
      for (const row of rows) {
        let fits = true;
        for (const [column, wanted] of chosen) {
          const words = column === -1 ? row.textContent.toLowerCase() : text(row, column);
          fits = fits && (column === -1 ? words.includes(wanted) : words === wanted);
        }
        row.hidden = !fits || shown >= most;
        shown += fits ? 1 : 0;
      }
      const seen = Math.min(shown, most);
      count.textContent = seen + " of " + rows.length + " claims";
      more.hidden = seen === shown;
      more.textContent = "Show all " + shown;
    }

    function choose(column, value) {
      if (value) chosen.set(column, value);
      else chosen.delete(column);
      show();
    }

    heads.forEach((head, column) => {
      const name = head.textContent.trim();
      if (FILTERED.includes(name)) {
        const label = document.createElement("label");
        const select = document.createElement("select");
        const values = Array.from(new Set(rows.map((row) => text(row, column)))).sort();
        for (const value of ["", ...values]) select.add(new Option(value || "all", value));
        select.addEventListener("change", () => choose(column, select.value));
        label.append(name, select);
        bar.append(label);
      }
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sorted = rows.slice().sort((a, b) => text(a, column).localeCompare(text(b, column)));
        if (down) sorted.reverse();
        table.tBodies[0].append(...sorted);
        rows.splice(0, rows.length, ...sorted);
        show();
      });
      head.replaceChildren(button);
    });
    const label = document.createElement("label");
    const word = document.createElement("input");
    word.type = "search";
    word.addEventListener("input", () => choose(-1, word.value.trim().toLowerCase()));
    label.append("Words", word);
    bar.append(label, count);
    board.prepend(bar);
    more.addEventListener("click", () => {
      most = Infinity;
      show();
    });
    board.append(more);
    show();
  }

  const start = () => document.querySelectorAll(".board").forEach(setUp);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
