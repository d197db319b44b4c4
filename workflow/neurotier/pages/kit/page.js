// Sort a table by the column whose heading is clicked; a second click turns the order round. Empty cells stay last.
document.querySelectorAll("table.sortable th button").forEach((button) => {
  button.addEventListener("click", () => {
    const heading = button.parentElement;
    const table = heading.closest("table");
    const column = [...heading.parentElement.children].indexOf(heading);
    const descending = heading.getAttribute("aria-sort") !== "descending";
    const value = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
    const compare = (a, b) => (isNaN(a) || isNaN(b) ? String(a).localeCompare(String(b)) : a - b);
    const order = (a, b) => (a === "") - (b === "") || compare(a, b) * (descending ? -1 : 1);
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    [...table.tBodies[0].rows]
      .sort((a, b) => order(value(a), value(b)))
      .forEach((row) => table.tBodies[0].append(row));
  });
});

// A long table gets a box that leaves the rows with its words.
document.querySelectorAll("table.sortable").forEach((table) => {
  const rows = [...table.tBodies[0].rows];
  if (rows.length <= 30) return;
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = "Show rows with ...";
  box.setAttribute("aria-label", "Show rows with these words");
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/);
    rows.forEach((row) => (row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word))));
  });
  table.parentElement.before(box);
});
