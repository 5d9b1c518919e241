"use strict";
// Sort a table by the column whose heading is pressed; what has no number stays last.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      const rows = [...body.rows].map((row) => {
        const cell = row.cells[column];
        const number = cell.classList.contains("number");
        return { row, number, key: number ? Number(cell.dataset.value ?? NaN) : cell.textContent };
      });
      rows.sort((one, other) => {
        if (!one.number) return direction * one.key.localeCompare(other.key);
        if (Number.isNaN(one.key) || Number.isNaN(other.key)) return Number.isNaN(one.key) - Number.isNaN(other.key);
        return direction * (one.key - other.key);
      });
      body.append(...rows.map((each) => each.row));
    });
  });
}
