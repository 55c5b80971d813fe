"use strict";
(() => {
  const figure = (cell) => {
    const found = /^[~<]?\s*(-?\d+(\.\d+)?)/.exec(cell);
    return found ? Number(found[1]) : null;
  };
  const compare = (one, other) => {
    const [a, b] = [figure(one), figure(other)];
    return a !== null && b !== null && a !== b ? a - b : one.localeCompare(other, "en", { numeric: true });
  };
  const empty = (cell) => cell === "" || cell === "–";
  const sort = (heading) => {
    const table = heading.closest("table");
    const body = table.tBodies[0];
    const first = heading.classList.contains("number") ? "descending" : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? second : first;
    const sign = order === "ascending" ? 1 : -1;
    const cell = (row) => row.cells[heading.cellIndex].textContent.trim();
    const rows = Array.from(body.rows).sort((one, other) => {
      const [a, b] = [cell(one), cell(other)];
      return empty(a) || empty(b) ? empty(a) - empty(b) : sign * compare(a, b);
    });
    for (const one of table.tHead.rows[0].cells) one.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", order);
    body.append(...rows);
  };
  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.addEventListener("click", () => sort(button.parentElement));
  }
  for (const hint of document.querySelectorAll(".hint")) hint.hidden = false;
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details.more, details.told")) one.open = true;
  });
})();
